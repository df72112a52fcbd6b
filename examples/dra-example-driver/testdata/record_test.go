// Records what upstream's driver answers. Copy it to cmd/dra-example-kubeletplugin of kubernetes-sigs/dra-example-driver and run
//
//	NODE_NAME=dev-node DIRECTORY=<this directory> go test ./cmd/dra-example-kubeletplugin -run TestRecord
//
// It replaces the answers in devices.jsonl and preparations.jsonl, whose lines begin with the questions.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/urfave/cli/v2"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
	cdispec "tags.cncf.io/container-device-interface/specs-go"
)

type devices struct {
	Args           []string                 `json:"args"`
	SharedCounters []resourceapi.CounterSet `json:"sharedCounters,omitempty"`
	Devices        []resourceapi.Device     `json:"devices"`
}

type preparation struct {
	Args             []string          `json:"args"`
	Device           string            `json:"device"`
	AdminAccess      bool              `json:"adminAccess,omitempty"`
	ShareID          string            `json:"shareID,omitempty"`
	ConsumedCapacity map[string]string `json:"consumedCapacity,omitempty"`
	Configuration    []string          `json:"configuration,omitempty"`
	Env              []string          `json:"env,omitempty"`
	Error            string            `json:"error,omitempty"`
}

func TestRecord(t *testing.T) {
	rewrite(t, "devices.jsonl", func(each *devices) {
		config := configOf(t, each.Args)
		resources, err := config.profile.EnumerateDevices()
		must(t, err)
		each.SharedCounters, each.Devices = nil, nil
		for _, slice := range resources.Pools[config.flags.nodeName].Slices {
			each.SharedCounters = append(each.SharedCounters, slice.SharedCounters...)
			each.Devices = append(each.Devices, slice.Devices...)
		}
	})
	rewrite(t, "preparations.jsonl", func(each *preparation) {
		each.Env, each.Error = nil, ""
		config := configOf(t, each.Args)
		state, err := NewDeviceState(config)
		must(t, err)
		if _, err := state.Prepare(t.Context(), claimOf(each, config)); err != nil {
			each.Error = err.Error()
			return
		}
		each.Env = envIn(t, config.flags.cdiRoot)
	})
}

func rewrite[T any](t *testing.T, name string, answer func(*T)) {
	path := filepath.Join(os.Getenv("DIRECTORY"), name)
	file, err := os.Open(path)
	must(t, err)
	var answered []byte
	for lines := bufio.NewScanner(file); lines.Scan(); {
		each := new(T)
		must(t, json.Unmarshal(lines.Bytes(), each))
		answer(each)
		line, err := json.Marshal(each)
		must(t, err)
		answered = append(append(answered, line...), '\n')
	}
	must(t, os.WriteFile(path, answered, 0o644))
}

func configOf(t *testing.T, args []string) *Config {
	directory := t.TempDir()
	config := &Config{}
	app := newApp()
	app.Before = nil // It configures the log, which is possible once.
	app.Action = func(c *cli.Context) error {
		config.flags = &Flags{
			nodeName: c.String("node-name"), numDevices: c.Int("num-devices"), profile: c.String("device-profile"),
			driverName: c.String("device-profile") + ".example.com",
			cdiRoot:    filepath.Join(directory, "cdi"), kubeletPluginsDirectoryPath: directory,
			gpuPartitions: c.Int("gpu-partitions"), bindingConditions: c.Bool("binding-conditions"),
			gpuAllowMultipleAllocations: c.Bool("gpu-allow-multiple-allocations"),
			cpuNUMANodes:                c.Int("cpu-numa-nodes"), cpusPerNUMANode: c.Int("cpus-per-numa-node"),
		}
		config.profile = validProfiles[config.flags.profile](*config.flags)
		return os.MkdirAll(config.DriverPluginPath(), 0o755)
	}
	must(t, app.Run(append([]string{"driver"}, args...)))
	return config
}

func claimOf(each *preparation, config *Config) *resourceapi.ResourceClaim {
	driver := config.flags.driverName
	result := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: config.flags.nodeName, Device: each.Device}
	if each.AdminAccess {
		result.AdminAccess = &each.AdminAccess
	}
	if each.ShareID != "" {
		result.ShareID = (*types.UID)(&each.ShareID)
		result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{}
	}
	for name, amount := range each.ConsumedCapacity {
		result.ConsumedCapacity[resourceapi.QualifiedName(name)] = resource.MustParse(amount)
	}
	allocation := &resourceapi.AllocationResult{}
	allocation.Devices.Results = []resourceapi.DeviceRequestAllocationResult{result}
	for _, parameters := range each.Configuration {
		configuration := resourceapi.DeviceAllocationConfiguration{Source: resourceapi.AllocationConfigSourceClaim}
		configuration.Opaque = &resourceapi.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(parameters)}}
		allocation.Devices.Config = append(allocation.Devices.Config, configuration)
	}
	claim := &resourceapi.ResourceClaim{}
	claim.UID, claim.Status.Allocation = "u1", allocation
	return claim
}

func envIn(t *testing.T, directory string) (env []string) {
	files, err := filepath.Glob(filepath.Join(directory, "*"))
	must(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		must(t, err)
		spec := cdispec.Spec{}
		must(t, yaml.Unmarshal(content, &spec))
		for _, device := range spec.Devices {
			env = append(env, device.ContainerEdits.Env...)
		}
	}
	slices.Sort(env)
	return env
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
