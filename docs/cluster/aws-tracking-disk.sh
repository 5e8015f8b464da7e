#!/usr/bin/env bash
# Attach an EBS volume to this machine and mount it: aws-tracking-disk.sh vol-0123456789abcdef0 /mnt/tracking
# Run on every start of the head; a volume that holds a file system is never formatted.
set -euo pipefail
volume=$1 place=$2
mountpoint -q "$place" && exit 0

metadata=http://169.254.169.254/latest
token=$(curl -sf -X PUT "$metadata/api/token" -H "X-aws-ec2-metadata-token-ttl-seconds: 300")
about() { curl -sf -H "X-aws-ec2-metadata-token: $token" "$metadata/meta-data/$1"; }

disk=/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_${volume/-/}
if [ ! -e "$disk" ]; then
    aws ec2 attach-volume --region "$(about placement/region)" --volume-id "$volume" \
        --instance-id "$(about instance-id)" --device /dev/sdf
    for _ in $(seq 60); do
        [ -e "$disk" ] && break
        sleep 2
    done
fi
[ -e "$disk" ] || { echo "$volume did not appear as $disk"; exit 1; }
# only a disk that begins with a megabyte of zeros is new, and is formatted
if sudo cmp -s -n 1048576 "$disk" /dev/zero; then
    sudo mkfs.ext4 -q "$disk"
fi
sudo mkdir -p "$place"
sudo mount "$disk" "$place"
sudo chown "$(id -un):" "$place"
