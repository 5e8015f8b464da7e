"""Misspelt keys inside `node_config`. Ray hands that block to the cloud unread, so a slip shows minutes later or never:
`InstanceMarketOption` for `InstanceMarketOptions` makes every spot worker an on-demand one.

The keys are those of EC2's RunInstances and of Compute Engine's instances.insert. Where botocore is installed, as it is
wherever `ray up` reaches AWS, its own model is asked instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from nowcastlab.cluster.document import Document, Finding, Key

Tree = Mapping[str, Any]  # key -> its own keys; None where it takes a plain value, or anything


def _plain(names: str) -> dict[str, None]:
    return dict.fromkeys(names.split())


AWS: Tree = {
    **_plain(
        "ImageId InstanceType KeyName SecurityGroupIds SecurityGroups SubnetId UserData EbsOptimized KernelId RamdiskId"
    ),
    **_plain(
        "DisableApiStop DisableApiTermination InstanceInitiatedShutdownBehavior PrivateIpAddress ClientToken DryRun"
    ),
    **_plain("AdditionalInfo EnablePrimaryIpv6 Ipv6AddressCount MinCount MaxCount"),
    "SubnetIds": None,  # Ray's own: it tries them in turn
    "BlockDeviceMappings": {
        **_plain("DeviceName VirtualName NoDevice"),
        "Ebs": _plain(
            "DeleteOnTermination Iops SnapshotId VolumeSize VolumeType KmsKeyId Throughput OutpostArn AvailabilityZone "
            "AvailabilityZoneId Encrypted VolumeInitializationRate EbsCardIndex"
        ),
    },
    "InstanceMarketOptions": {
        "MarketType": None,
        "SpotOptions": _plain("MaxPrice SpotInstanceType BlockDurationMinutes ValidUntil InstanceInterruptionBehavior"),
    },
    "IamInstanceProfile": _plain("Arn Name"),
    "NetworkInterfaces": {
        **_plain("AssociatePublicIpAddress DeleteOnTermination Description DeviceIndex Groups Ipv6AddressCount"),
        **_plain("NetworkInterfaceId PrivateIpAddress SecondaryPrivateIpAddressCount SubnetId InterfaceType"),
        **_plain("AssociateCarrierIpAddress NetworkCardIndex Ipv4PrefixCount Ipv6PrefixCount PrimaryIpv6"),
        **_plain("Ipv6Addresses PrivateIpAddresses Ipv4Prefixes Ipv6Prefixes EnaSrdSpecification"),
        **_plain("ConnectionTrackingSpecification EnaQueueCount"),
    },
    "Placement": _plain(
        "AvailabilityZone AvailabilityZoneId Affinity GroupName GroupId PartitionNumber HostId Tenancy SpreadDomain "
        "HostResourceGroupArn"
    ),
    "TagSpecifications": {"ResourceType": None, "Tags": _plain("Key Value")},
    "LaunchTemplate": _plain("LaunchTemplateId LaunchTemplateName Version"),
    "MetadataOptions": _plain("HttpTokens HttpPutResponseHopLimit HttpEndpoint HttpProtocolIpv6 InstanceMetadataTags"),
    "CapacityReservationSpecification": {
        "CapacityReservationPreference": None,
        "CapacityReservationTarget": _plain("CapacityReservationId CapacityReservationResourceGroupArn"),
    },
    "Monitoring": _plain("Enabled"),
    "CreditSpecification": _plain("CpuCredits"),
    "CpuOptions": _plain("CoreCount ThreadsPerCore AmdSevSnp NestedVirtualization"),
    "HibernationOptions": _plain("Configured"),
    "EnclaveOptions": _plain("Enabled"),
    "MaintenanceOptions": _plain("AutoRecovery"),
    "NetworkPerformanceOptions": _plain("BandwidthWeighting"),
    "PrivateDnsNameOptions": _plain("HostnameType EnableResourceNameDnsARecord EnableResourceNameDnsAAAARecord"),
    **_plain("Ipv6Addresses ElasticGpuSpecification ElasticInferenceAccelerators LicenseSpecifications Operator"),
    **_plain("SecondaryInterfaces"),
}

GCP: Tree = {
    **_plain("machineType minCpuPlatform canIpForward description name hostname zone labels resourcePolicies"),
    **_plain("deletionProtection privateIpv6GoogleAccess resourceManagerTags keyRevocationActionType fingerprint"),
    **_plain("sourceMachineImage sourceInstanceTemplate sourceMachineImageEncryptionKey instanceEncryptionKey"),
    **_plain("acceleratorType runtimeVersion networkConfig acceleratorConfig reservationAffinity startRestricted"),
    "disks": {
        **_plain("boot autoDelete type mode deviceName source interface index diskSizeGb architecture guestOsFeatures"),
        **_plain("diskEncryptionKey forceAttach kind licenses savedState shieldedInstanceInitialState"),
        "initializeParams": _plain(
            "diskName diskSizeGb diskType sourceImage sourceSnapshot labels description provisionedIops "
            "provisionedThroughput onUpdateAction resourcePolicies architecture licenses sourceImageEncryptionKey "
            "sourceSnapshotEncryptionKey enableConfidentialCompute replicaZones resourceManagerTags storagePool "
            "accessMode"
        ),
    },
    "networkInterfaces": {
        **_plain("kind network subnetwork networkIP name aliasIpRanges nicType stackType queueCount networkAttachment"),
        **_plain("ipv6AccessConfigs internalIpv6PrefixLength ipv6Address fingerprint"),
        "accessConfigs": _plain(
            "kind type name natIP networkTier setPublicPtr publicPtrDomainName externalIpv6 externalIpv6PrefixLength "
            "securityPolicy"
        ),
    },
    "scheduling": _plain(
        "preemptible onHostMaintenance automaticRestart provisioningModel instanceTerminationAction nodeAffinities "
        "minNodeCpus locationHint availabilityDomain localSsdRecoveryTimeout maxRunDuration terminationTime "
        "hostErrorTimeoutSeconds onInstanceStopAction"
    ),
    "guestAccelerators": _plain("acceleratorType acceleratorCount"),
    "serviceAccounts": _plain("email scopes"),
    "tags": _plain("items fingerprint"),
    "metadata": {"items": _plain("key value"), "kind": None, "fingerprint": None},
    "shieldedInstanceConfig": _plain("enableSecureBoot enableVtpm enableIntegrityMonitoring"),
    "confidentialInstanceConfig": _plain("enableConfidentialCompute confidentialInstanceType"),
    "advancedMachineFeatures": _plain(
        "enableNestedVirtualization threadsPerCore visibleCoreCount enableUefiNetworking performanceMonitoringUnit "
        "turboMode"
    ),
    "networkPerformanceConfig": _plain("totalEgressBandwidthTier"),
    "displayDevice": _plain("enableDisplay"),
    "params": _plain("resourceManagerTags"),
}


def misspelt_keys(document: Document) -> Iterator[Finding]:
    """Keys of a `node_config` that its cloud does not know."""
    trees: dict[str, Tree] = {"aws": AWS, "gcp": GCP}
    tree = trees.get(str(document.get("provider", "type")))
    if tree is None:
        return
    if tree is AWS:
        tree = _botocore_keys() or AWS
    for name in document.mapping("available_node_types"):
        yield from unknown_keys(document, tree, "available_node_types", name, "node_config")


def unknown_keys(document: Document, tree: Tree, *place: Key) -> Iterator[Finding]:
    """Keys below a place that the tree does not have, each with the nearest it has."""
    value = document.get(*place)
    if isinstance(value, list):
        for i in range(len(value)):
            yield from unknown_keys(document, tree, *place, i)
    if not isinstance(value, dict):
        return
    for key in value:
        if key not in tree:
            near = difflib.get_close_matches(str(key), tree, n=1, cutoff=0.6)
            hint = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(sorted(tree))}."
            yield document.finding(f"{key} is no key of {place[-1]}.{hint}", *place, key)
        elif tree[key] is not None:
            yield from unknown_keys(document, tree[key], *place, key)


def _botocore_keys() -> Tree | None:
    try:
        import botocore.session
    except ImportError:
        return None
    model = botocore.session.get_session().get_service_model("ec2").operation_model("RunInstances")

    def tree(shape: Any) -> Tree | None:
        if shape.type_name == "list":
            return tree(shape.member)
        return {key: tree(member) for key, member in shape.members.items()} if shape.type_name == "structure" else None

    return {**(tree(model.input_shape) or {}), "SubnetIds": None}
