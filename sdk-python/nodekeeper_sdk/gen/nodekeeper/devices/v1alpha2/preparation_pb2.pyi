from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PrepareDevicesRequest(_message.Message):
    __slots__ = ("claim", "pods", "devices")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    claim: Claim
    pods: _containers.RepeatedCompositeFieldContainer[Pod]
    devices: _containers.RepeatedCompositeFieldContainer[AllocatedDevice]
    def __init__(self, claim: _Optional[_Union[Claim, _Mapping]] = ..., pods: _Optional[_Iterable[_Union[Pod, _Mapping]]] = ..., devices: _Optional[_Iterable[_Union[AllocatedDevice, _Mapping]]] = ...) -> None: ...

class Claim(_message.Message):
    __slots__ = ("namespace", "name", "uid", "labels", "annotations", "requests")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    uid: str
    labels: _containers.ScalarMap[str, str]
    annotations: _containers.ScalarMap[str, str]
    requests: _containers.RepeatedCompositeFieldContainer[ClaimRequest]
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., requests: _Optional[_Iterable[_Union[ClaimRequest, _Mapping]]] = ...) -> None: ...

class ClaimRequest(_message.Message):
    __slots__ = ("name", "device_class_name", "allocation_mode", "count", "admin_access", "selectors", "capacity")
    class CapacityEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEVICE_CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_MODE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ADMIN_ACCESS_FIELD_NUMBER: _ClassVar[int]
    SELECTORS_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    name: str
    device_class_name: str
    allocation_mode: str
    count: int
    admin_access: bool
    selectors: _containers.RepeatedScalarFieldContainer[str]
    capacity: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., device_class_name: _Optional[str] = ..., allocation_mode: _Optional[str] = ..., count: _Optional[int] = ..., admin_access: _Optional[bool] = ..., selectors: _Optional[_Iterable[str]] = ..., capacity: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Pod(_message.Message):
    __slots__ = ("name", "uid", "namespace", "service_account")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    uid: str
    namespace: str
    service_account: str
    def __init__(self, name: _Optional[str] = ..., uid: _Optional[str] = ..., namespace: _Optional[str] = ..., service_account: _Optional[str] = ...) -> None: ...

class AllocatedDevice(_message.Message):
    __slots__ = ("request", "pool", "device", "share_id", "consumed_capacity", "admin_access", "configuration", "binding_conditions", "binding_failure_conditions")
    class ConsumedCapacityEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SHARE_ID_FIELD_NUMBER: _ClassVar[int]
    CONSUMED_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    ADMIN_ACCESS_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    BINDING_CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    BINDING_FAILURE_CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    request: str
    pool: str
    device: str
    share_id: str
    consumed_capacity: _containers.ScalarMap[str, str]
    admin_access: bool
    configuration: _containers.RepeatedCompositeFieldContainer[Configuration]
    binding_conditions: _containers.RepeatedScalarFieldContainer[str]
    binding_failure_conditions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request: _Optional[str] = ..., pool: _Optional[str] = ..., device: _Optional[str] = ..., share_id: _Optional[str] = ..., consumed_capacity: _Optional[_Mapping[str, str]] = ..., admin_access: _Optional[bool] = ..., configuration: _Optional[_Iterable[_Union[Configuration, _Mapping]]] = ..., binding_conditions: _Optional[_Iterable[str]] = ..., binding_failure_conditions: _Optional[_Iterable[str]] = ...) -> None: ...

class Configuration(_message.Message):
    __slots__ = ("source", "parameters")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    source: str
    parameters: str
    def __init__(self, source: _Optional[str] = ..., parameters: _Optional[str] = ...) -> None: ...

class PrepareDevicesResponse(_message.Message):
    __slots__ = ("devices", "edits")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    EDITS_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[PreparedDevice]
    edits: ContainerEdits
    def __init__(self, devices: _Optional[_Iterable[_Union[PreparedDevice, _Mapping]]] = ..., edits: _Optional[_Union[ContainerEdits, _Mapping]] = ...) -> None: ...

class PreparedDevice(_message.Message):
    __slots__ = ("request", "pool", "device", "share_id", "edits", "cdi_device_ids", "annotations")
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SHARE_ID_FIELD_NUMBER: _ClassVar[int]
    EDITS_FIELD_NUMBER: _ClassVar[int]
    CDI_DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    request: str
    pool: str
    device: str
    share_id: str
    edits: ContainerEdits
    cdi_device_ids: _containers.RepeatedScalarFieldContainer[str]
    annotations: _containers.ScalarMap[str, str]
    def __init__(self, request: _Optional[str] = ..., pool: _Optional[str] = ..., device: _Optional[str] = ..., share_id: _Optional[str] = ..., edits: _Optional[_Union[ContainerEdits, _Mapping]] = ..., cdi_device_ids: _Optional[_Iterable[str]] = ..., annotations: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ContainerEdits(_message.Message):
    __slots__ = ("env", "device_nodes", "mounts", "hooks", "additional_gids", "intel_rdt", "net_devices")
    ENV_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NODES_FIELD_NUMBER: _ClassVar[int]
    MOUNTS_FIELD_NUMBER: _ClassVar[int]
    HOOKS_FIELD_NUMBER: _ClassVar[int]
    ADDITIONAL_GIDS_FIELD_NUMBER: _ClassVar[int]
    INTEL_RDT_FIELD_NUMBER: _ClassVar[int]
    NET_DEVICES_FIELD_NUMBER: _ClassVar[int]
    env: _containers.RepeatedScalarFieldContainer[str]
    device_nodes: _containers.RepeatedCompositeFieldContainer[DeviceNode]
    mounts: _containers.RepeatedCompositeFieldContainer[Mount]
    hooks: _containers.RepeatedCompositeFieldContainer[Hook]
    additional_gids: _containers.RepeatedScalarFieldContainer[int]
    intel_rdt: IntelRdt
    net_devices: _containers.RepeatedCompositeFieldContainer[NetDevice]
    def __init__(self, env: _Optional[_Iterable[str]] = ..., device_nodes: _Optional[_Iterable[_Union[DeviceNode, _Mapping]]] = ..., mounts: _Optional[_Iterable[_Union[Mount, _Mapping]]] = ..., hooks: _Optional[_Iterable[_Union[Hook, _Mapping]]] = ..., additional_gids: _Optional[_Iterable[int]] = ..., intel_rdt: _Optional[_Union[IntelRdt, _Mapping]] = ..., net_devices: _Optional[_Iterable[_Union[NetDevice, _Mapping]]] = ...) -> None: ...

class IntelRdt(_message.Message):
    __slots__ = ("clos_id", "l3_cache_schema", "mem_bw_schema", "schemata", "enable_monitoring")
    CLOS_ID_FIELD_NUMBER: _ClassVar[int]
    L3_CACHE_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    MEM_BW_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SCHEMATA_FIELD_NUMBER: _ClassVar[int]
    ENABLE_MONITORING_FIELD_NUMBER: _ClassVar[int]
    clos_id: str
    l3_cache_schema: str
    mem_bw_schema: str
    schemata: _containers.RepeatedScalarFieldContainer[str]
    enable_monitoring: bool
    def __init__(self, clos_id: _Optional[str] = ..., l3_cache_schema: _Optional[str] = ..., mem_bw_schema: _Optional[str] = ..., schemata: _Optional[_Iterable[str]] = ..., enable_monitoring: _Optional[bool] = ...) -> None: ...

class NetDevice(_message.Message):
    __slots__ = ("host_interface_name", "name")
    HOST_INTERFACE_NAME_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    host_interface_name: str
    name: str
    def __init__(self, host_interface_name: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DeviceNode(_message.Message):
    __slots__ = ("path", "host_path", "type", "major", "minor", "file_mode", "permissions", "uid", "gid")
    PATH_FIELD_NUMBER: _ClassVar[int]
    HOST_PATH_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MAJOR_FIELD_NUMBER: _ClassVar[int]
    MINOR_FIELD_NUMBER: _ClassVar[int]
    FILE_MODE_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    GID_FIELD_NUMBER: _ClassVar[int]
    path: str
    host_path: str
    type: str
    major: int
    minor: int
    file_mode: int
    permissions: str
    uid: int
    gid: int
    def __init__(self, path: _Optional[str] = ..., host_path: _Optional[str] = ..., type: _Optional[str] = ..., major: _Optional[int] = ..., minor: _Optional[int] = ..., file_mode: _Optional[int] = ..., permissions: _Optional[str] = ..., uid: _Optional[int] = ..., gid: _Optional[int] = ...) -> None: ...

class Mount(_message.Message):
    __slots__ = ("host_path", "container_path", "options", "type")
    HOST_PATH_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_PATH_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    host_path: str
    container_path: str
    options: _containers.RepeatedScalarFieldContainer[str]
    type: str
    def __init__(self, host_path: _Optional[str] = ..., container_path: _Optional[str] = ..., options: _Optional[_Iterable[str]] = ..., type: _Optional[str] = ...) -> None: ...

class Hook(_message.Message):
    __slots__ = ("hook_name", "path", "args", "env", "timeout")
    HOOK_NAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    hook_name: str
    path: str
    args: _containers.RepeatedScalarFieldContainer[str]
    env: _containers.RepeatedScalarFieldContainer[str]
    timeout: int
    def __init__(self, hook_name: _Optional[str] = ..., path: _Optional[str] = ..., args: _Optional[_Iterable[str]] = ..., env: _Optional[_Iterable[str]] = ..., timeout: _Optional[int] = ...) -> None: ...

class UnprepareDevicesRequest(_message.Message):
    __slots__ = ("claim", "devices", "pods")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    claim: Claim
    devices: _containers.RepeatedCompositeFieldContainer[AllocatedDevice]
    pods: _containers.RepeatedCompositeFieldContainer[Pod]
    def __init__(self, claim: _Optional[_Union[Claim, _Mapping]] = ..., devices: _Optional[_Iterable[_Union[AllocatedDevice, _Mapping]]] = ..., pods: _Optional[_Iterable[_Union[Pod, _Mapping]]] = ...) -> None: ...

class UnprepareDevicesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RestoreClaimsRequest(_message.Message):
    __slots__ = ("claims",)
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    claims: _containers.RepeatedCompositeFieldContainer[PreparedClaim]
    def __init__(self, claims: _Optional[_Iterable[_Union[PreparedClaim, _Mapping]]] = ...) -> None: ...

class PreparedClaim(_message.Message):
    __slots__ = ("claim", "pods", "devices", "is_prepared")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    IS_PREPARED_FIELD_NUMBER: _ClassVar[int]
    claim: Claim
    pods: _containers.RepeatedCompositeFieldContainer[Pod]
    devices: _containers.RepeatedCompositeFieldContainer[AllocatedDevice]
    is_prepared: bool
    def __init__(self, claim: _Optional[_Union[Claim, _Mapping]] = ..., pods: _Optional[_Iterable[_Union[Pod, _Mapping]]] = ..., devices: _Optional[_Iterable[_Union[AllocatedDevice, _Mapping]]] = ..., is_prepared: _Optional[bool] = ...) -> None: ...

class RestoreClaimsResponse(_message.Message):
    __slots__ = ("prepare_again",)
    PREPARE_AGAIN_FIELD_NUMBER: _ClassVar[int]
    prepare_again: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, prepare_again: _Optional[_Iterable[str]] = ...) -> None: ...

class ReportAllocationsRequest(_message.Message):
    __slots__ = ("claims",)
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    claims: _containers.RepeatedCompositeFieldContainer[ClaimToBind]
    def __init__(self, claims: _Optional[_Iterable[_Union[ClaimToBind, _Mapping]]] = ...) -> None: ...

class ClaimToBind(_message.Message):
    __slots__ = ("claim", "pods", "devices", "allocated_at")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_AT_FIELD_NUMBER: _ClassVar[int]
    claim: Claim
    pods: _containers.RepeatedCompositeFieldContainer[Pod]
    devices: _containers.RepeatedCompositeFieldContainer[AllocatedDevice]
    allocated_at: int
    def __init__(self, claim: _Optional[_Union[Claim, _Mapping]] = ..., pods: _Optional[_Iterable[_Union[Pod, _Mapping]]] = ..., devices: _Optional[_Iterable[_Union[AllocatedDevice, _Mapping]]] = ..., allocated_at: _Optional[int] = ...) -> None: ...

class ReportAllocationsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchDeviceStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchDeviceStatusResponse(_message.Message):
    __slots__ = ("devices",)
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[DeviceStatus]
    def __init__(self, devices: _Optional[_Iterable[_Union[DeviceStatus, _Mapping]]] = ...) -> None: ...

class DeviceStatus(_message.Message):
    __slots__ = ("claim_uid", "pool", "device", "share_id", "conditions", "data", "network_data")
    CLAIM_UID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SHARE_ID_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    NETWORK_DATA_FIELD_NUMBER: _ClassVar[int]
    claim_uid: str
    pool: str
    device: str
    share_id: str
    conditions: _containers.RepeatedCompositeFieldContainer[Condition]
    data: str
    network_data: NetworkData
    def __init__(self, claim_uid: _Optional[str] = ..., pool: _Optional[str] = ..., device: _Optional[str] = ..., share_id: _Optional[str] = ..., conditions: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ..., data: _Optional[str] = ..., network_data: _Optional[_Union[NetworkData, _Mapping]] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("type", "status", "reason", "message", "observed_generation")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_GENERATION_FIELD_NUMBER: _ClassVar[int]
    type: str
    status: str
    reason: str
    message: str
    observed_generation: int
    def __init__(self, type: _Optional[str] = ..., status: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., observed_generation: _Optional[int] = ...) -> None: ...

class NetworkData(_message.Message):
    __slots__ = ("interface_name", "ips", "hardware_address")
    INTERFACE_NAME_FIELD_NUMBER: _ClassVar[int]
    IPS_FIELD_NUMBER: _ClassVar[int]
    HARDWARE_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    interface_name: str
    ips: _containers.RepeatedScalarFieldContainer[str]
    hardware_address: str
    def __init__(self, interface_name: _Optional[str] = ..., ips: _Optional[_Iterable[str]] = ..., hardware_address: _Optional[str] = ...) -> None: ...

class ReportProblemsRequest(_message.Message):
    __slots__ = ("problems",)
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    problems: _containers.RepeatedCompositeFieldContainer[Problem]
    def __init__(self, problems: _Optional[_Iterable[_Union[Problem, _Mapping]]] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("error_id", "message", "pool", "device", "claim_uid", "since")
    ERROR_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    CLAIM_UID_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    error_id: str
    message: str
    pool: str
    device: str
    claim_uid: str
    since: int
    def __init__(self, error_id: _Optional[str] = ..., message: _Optional[str] = ..., pool: _Optional[str] = ..., device: _Optional[str] = ..., claim_uid: _Optional[str] = ..., since: _Optional[int] = ...) -> None: ...

class ReportProblemsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchDeviceHealthRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchDeviceHealthResponse(_message.Message):
    __slots__ = ("devices",)
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[DeviceHealth]
    def __init__(self, devices: _Optional[_Iterable[_Union[DeviceHealth, _Mapping]]] = ...) -> None: ...

class DeviceHealth(_message.Message):
    __slots__ = ("pool", "device", "healthy", "message", "taint_effect")
    POOL_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    HEALTHY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TAINT_EFFECT_FIELD_NUMBER: _ClassVar[int]
    pool: str
    device: str
    healthy: bool
    message: str
    taint_effect: str
    def __init__(self, pool: _Optional[str] = ..., device: _Optional[str] = ..., healthy: _Optional[bool] = ..., message: _Optional[str] = ..., taint_effect: _Optional[str] = ...) -> None: ...
