"""Synthetic radar: rain from a seed, in the layout of a real archive, for everyone without access to one.

Read `spectral` (random fields that live and move), `motion` (where they go), `rain` (how they become echoes), `clutter`
(what is planted on top), `days` (a day's frames and its gaps), `write` (files or a store), `describe` (how close it
comes to the real thing). Every frame is a function of (seed, size, minute) alone.
"""
