/** What a driver must do. `source` names the definition in `proto/`. */
export interface Rule {
  contract: string;
  source: string;
}

const registration = "pluginregistration/v1/api.proto";
const stream = "nodekeeper/devices/v1alpha2/api.proto";
const claims = "nodekeeper/devices/v1alpha2/preparation.proto";

/** The rules that the suite checks, in the order of its output. */
export const rules = {
  "get-info": {
    contract: "GetInfo returns type DRAPlugin, supported versions, and an absolute endpoint or none",
    source: `${registration}, Registration.GetInfo`,
  },
  "driver-name": {
    contract: "the name is a DNS subdomain of at most 63 characters",
    source: `${registration}, PluginInfo.name`,
  },
  versions: {
    contract: "the supported versions include a package of the contract, and otherwise services of it",
    source: `${registration}, PluginInfo.supported_versions`,
  },
  "versions-served": {
    contract: "each service among the supported versions is served",
    source: claims,
  },
  notify: {
    contract: "NotifyRegistrationStatus is answered",
    source: `${registration}, Registration.NotifyRegistrationStatus`,
  },
  "first-message": {
    contract: "the stream of devices begins with the whole state, within 10 s",
    source: `${stream}, DeviceDriver.ListAndWatchDevices`,
  },
  "valid-devices": {
    contract: "pools and devices follow the rules of resource.k8s.io/v1; the agent quarantines others",
    source: `${stream}, ListAndWatchDevicesResponse`,
  },
  "whole-state-again": {
    contract: "a second stream, and one after a lost connection, begin with the same whole state",
    source: `${stream}, DeviceDriver.ListAndWatchDevices`,
  },
  health: {
    contract: "the health of streamed devices is sent at once, with messages of at most 1,024 characters",
    source: `${claims}, DeviceHealthReport`,
  },
  feedback: {
    contract: "ReportProblems is answered",
    source: `${claims}, DriverFeedback`,
  },
  allocations: {
    contract: "ReportAllocations is answered within 10 s, with a claim and when it is gone",
    source: `${claims}, DeviceBinding`,
  },
  prepare: {
    contract: "PrepareDevices of a streamed device succeeds, within the kubelet's 45 s",
    source: `${claims}, DevicePreparation.PrepareDevices`,
  },
  answer: {
    contract:
      "PrepareDevices returns each device of the claim once, with edits that follow the CDI specification",
    source: `${claims}, PrepareDevicesResponse`,
  },
  unprepare: {
    contract: "UnprepareDevices of a prepared claim succeeds",
    source: `${claims}, DevicePreparation.UnprepareDevices`,
  },
  "prepare-again": {
    contract: "PrepareDevices is idempotent: a repeated call returns an equal answer",
    source: `${claims}, DevicePreparation.PrepareDevices, 1`,
  },
  "unprepare-again": {
    contract: "UnprepareDevices is idempotent",
    source: `${claims}, DevicePreparation.UnprepareDevices`,
  },
  "unprepare-unknown": {
    contract: "UnprepareDevices of a claim that the driver does not know succeeds, also without devices",
    source: `${claims}, DevicePreparation.UnprepareDevices`,
  },
  "prepare-after-unprepare": {
    contract: "a claim can be prepared again after it was unprepared",
    source: `${claims}, DevicePreparation.PrepareDevices`,
  },
  "restore-claims": {
    contract: "RestoreClaims returns UIDs of prepared claims of the request, or is not implemented",
    source: `${claims}, DevicePreparation.RestoreClaims`,
  },
  overlapping: {
    contract: "each of several overlapping calls for different claims returns the devices of its claim",
    source: `${claims}, DevicePreparation.PrepareDevices, 2`,
  },
  cancelled: {
    contract: "a call after a cancelled one for the same claim succeeds",
    source: `${claims}, DevicePreparation.PrepareDevices, 1`,
  },
  "prepare-time": {
    contract: "PrepareDevices returns within the kubelet's 45 s; the goal is a p99 of 1 s",
    source: `${claims}, DevicePreparation.PrepareDevices`,
  },
  status: {
    contract: "the status of allocated devices is sent at once, and is valid",
    source: `${claims}, DeviceStatusReport`,
  },
  "unknown-fields": {
    contract: "fields of a newer contract are ignored",
    source: `${claims}, PrepareDevicesRequest`,
  },
  "no-devices": {
    contract: "a claim without devices gets an error or a valid answer, and the driver serves on",
    source: `${claims}, PrepareDevicesRequest.devices`,
  },
  "unknown-device": {
    contract: "a device that does not exist gets an error or a valid answer, and the driver serves on",
    source: `${claims}, AllocatedDevice.device`,
  },
  configuration: {
    contract:
      "configuration that the driver does not understand gets an error or a valid answer, and the driver serves on",
    source: `${claims}, Configuration.parameters`,
  },
  "unprepare-refused": {
    contract: "UnprepareDevices of a claim whose preparation was refused succeeds",
    source: `${claims}, DevicePreparation.PrepareDevices, 3`,
  },
  "long-names": {
    contract: "names of 4 KiB get an error or a valid answer, and the driver serves on",
    source: `${claims}, AllocatedDevice`,
  },
  "many-devices": {
    contract: "128 devices get an error or a valid answer, and the driver serves on",
    source: `${claims}, PrepareDevicesRequest.devices`,
  },
  "malformed-request": {
    contract: "bytes that are no request get an error, and the driver serves on",
    source: `${claims}, PrepareDevicesRequest`,
  },
  restart: {
    contract: "after a restart, the driver serves its socket under the same name within 30 s",
    source: `${registration}, Registration.GetInfo`,
  },
  "restart-claims": {
    contract: "a claim that was prepared before a restart can be prepared again and unprepared after it",
    source: `${claims}, DevicePreparation.RestoreClaims`,
  },
  "clean-end": {
    contract: "after SIGTERM, the driver exits and its socket is removed, within 10 s",
    source: `${registration}, Registration`,
  },
} as const satisfies Record<string, Rule>;

export type RuleId = keyof typeof rules;
