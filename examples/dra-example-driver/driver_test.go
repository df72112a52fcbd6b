package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	nodekeeper "github.com/nodekeeper/nodekeeper/sdk-go"
	"github.com/nodekeeper/nodekeeper/sdk-go/devcluster"
	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

// The files in testdata are what upstream's driver was asked and answered, see testdata/record_test.go.

func TestContainersGetWhatUpstreamGivesThem(t *testing.T) {
	type preparation struct {
		Args             []string
		Device, ShareID  string
		AdminAccess      bool
		ConsumedCapacity map[string]string
		Configuration    []string
		Env              []string
		Error            string
	}
	for _, each := range recorded[preparation](t, "preparations.jsonl") {
		allocated := &devices.AllocatedDevice{
			Request: "r", Pool: devcluster.NodeName, Device: each.Device, AdminAccess: each.AdminAccess,
			ShareId: each.ShareID, ConsumedCapacity: each.ConsumedCapacity,
		}
		for _, parameters := range each.Configuration {
			allocated.Configuration = append(allocated.Configuration, &devices.Configuration{Source: "FromClaim", Parameters: parameters})
		}
		question := strings.Join(append(append(each.Args, each.Device), each.Configuration...), " ")
		response, err := driverWith(t, each.Args).Prepare(t.Context(), &devices.PrepareDevicesRequest{
			Claim:   &devices.Claim{Uid: "u1", Requests: []*devices.ClaimRequest{{Name: "r", AdminAccess: each.AdminAccess}}},
			Devices: []*devices.AllocatedDevice{allocated},
		})
		if (err != nil) != (each.Error != "") {
			t.Errorf("%s: error %v, upstream's is %q", question, err, each.Error)
		}
		if err != nil {
			continue
		}
		if env := slices.Sorted(slices.Values(append(response.Edits.Env, response.Devices[0].Edits.Env...))); !slices.Equal(env, each.Env) {
			t.Errorf("%s:\n%q, upstream has\n%q", question, env, each.Env)
		}
	}
}

func TestPublishedDevicesAreThoseOfUpstream(t *testing.T) {
	cluster := devcluster.Start(t)
	type spec struct {
		Devices        []map[string]any
		SharedCounters []any
	}
	type published struct {
		Args []string
		spec
	}
	for _, each := range recorded[published](t, "devices.jsonl") {
		if isOfCPU(each.Args) {
			continue
		}
		t.Run(strings.Join(each.Args, " "), func(t *testing.T) {
			o := optionsOf(t, each.Args)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				ended <- nodekeeper.ServeDeviceDriver(ctx, nodekeeper.Options{Name: o.driverName, SocketDir: cluster.PluginDirectory}, driverWith(t, each.Args))
			}()
			defer func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			for _, device := range each.Devices {
				asStored(device)
			}
			cluster.Until("the slices have the devices", func() (bool, error) {
				var list struct {
					Items []struct {
						Spec struct {
							Driver string
							spec
						}
					}
				}
				err := devcluster.Read(cluster.APIServer+"/apis/resource.k8s.io/v1/resourceslices", &list)
				var stored spec
				for _, slice := range list.Items {
					if slice.Spec.Driver == o.driverName {
						stored.Devices = append(stored.Devices, slice.Spec.Devices...)
						stored.SharedCounters = append(stored.SharedCounters, slice.Spec.SharedCounters...)
					}
				}
				if err == nil && !reflect.DeepEqual(stored, each.spec) {
					err = fmt.Errorf("stored %v, upstream has %v", stored, each.spec)
				}
				return err == nil, err
			})
		})
	}
}

// asStored leaves out a default.
func asStored(device map[string]any) {
	if device["allowMultipleAllocations"] == false {
		delete(device, "allowMultipleAllocations")
	}
}

// API servers before 1.37 have another field than nodeAllocatableResources, and the agent does not publish them without it.
func TestNUMANodesAreThoseOfUpstream(t *testing.T) {
	type numaNode struct {
		Name                            string
		AllowMultipleAllocations        bool
		Attributes                      map[string]map[string]any
		Capacity                        map[string]map[string]any
		NodeAllocatableResourceMappings map[string]map[string]string
	}
	type published struct {
		Args    []string
		Devices []numaNode
	}
	for _, each := range recorded[published](t, "devices.jsonl") {
		if !isOfCPU(each.Args) {
			continue
		}
		var reported []numaNode
		err := driverWith(t, each.Args).Devices(t.Context(), func(pools []*devices.Pool) {
			for _, device := range pools[0].Devices {
				node := numaNode{Name: device.Name, AllowMultipleAllocations: device.AllowMultipleAllocations}
				node.Attributes = map[string]map[string]any{"numaNodeID": {"int": float64(device.Attributes["numaNodeID"].GetInt())}}
				node.Capacity = map[string]map[string]any{"cpu.example.com/cpu": {"value": device.Capacity["cpu.example.com/cpu"].Value}}
				node.NodeAllocatableResourceMappings = map[string]map[string]string{
					"cpu": {"capacityKey": device.NodeAllocatableResources["cpu"].Mapping.CapacityKey},
				}
				reported = append(reported, node)
			}
		})
		if err != nil || !reflect.DeepEqual(reported, each.Devices) {
			t.Errorf("%v, upstream has %v: %v", reported, each.Devices, err)
		}
	}
}

func isOfCPU(args []string) bool { return slices.Contains(args, "--device-profile=cpu") }

func TestStatusOfRestoredAndPreparedClaims(t *testing.T) {
	driver := driverWith(t, []string{"--gpu-device-status", "--num-devices=2"})
	reports := make(chan []string)
	go func() {
		_ = driver.Status(t.Context(), func(statuses []*devices.DeviceStatus) {
			var report []string
			for _, each := range statuses {
				report = append(report, each.ClaimUid+" "+each.Device+" "+each.Data)
			}
			slices.Sort(report)
			reports <- report
		})
	}()
	// Upstream's, as ResourceClaim.status.devices[].data has it.
	const data = ` {"driverVersion":{"version":"1.0.0"},"model":{"string":"LATEST-GPU-MODEL"},"uuid":{"string":"gpu-`
	expect := func(what string, wanted ...string) {
		t.Helper()
		if report := <-reports; len(report) != len(wanted) {
			t.Errorf("%s: %q", what, report)
		} else {
			for index, each := range wanted {
				if !strings.HasPrefix(report[index], each+data) {
					t.Errorf("%s: %q", what, report)
				}
			}
		}
	}
	older, newer := &devices.Claim{Uid: "older"}, &devices.Claim{Uid: "newer"}
	of := func(device string) []*devices.AllocatedDevice {
		return []*devices.AllocatedDevice{{Request: "r", Pool: devcluster.NodeName, Device: device}}
	}
	again, err := driver.RestoreClaims(t.Context(), []*devices.PreparedClaim{{Claim: older, Devices: of("gpu-0"), IsPrepared: true}})
	if err != nil || len(again) > 0 {
		t.Errorf("prepare again: %q, %v", again, err)
	}
	expect("restored", "older gpu-0")
	if _, err := driver.Prepare(t.Context(), &devices.PrepareDevicesRequest{Claim: newer, Devices: of("gpu-1")}); err != nil {
		t.Error(err)
	}
	expect("prepared", "newer gpu-1", "older gpu-0")
	if err := driver.Unprepare(t.Context(), &devices.UnprepareDevicesRequest{Claim: older}); err != nil {
		t.Error(err)
	}
	expect("unprepared", "newer gpu-1")
}

func TestBindingConditionsOfClaimsThatWaitAndArePrepared(t *testing.T) {
	driver := driverWith(t, []string{"--binding-conditions", "--num-devices=2"})
	reports := make(chan []*devices.DeviceStatus)
	go func() {
		_ = driver.Status(t.Context(), func(statuses []*devices.DeviceStatus) { reports <- statuses })
	}()
	expect := func(what string, wanted int) {
		t.Helper()
		report := <-reports
		if len(report) != wanted {
			t.Errorf("%s: %v", what, report)
		}
		for _, each := range report {
			if len(each.Conditions) != 1 || each.Conditions[0].Type != "BindingConditions" || each.Conditions[0].Status != "True" || each.Data != "" {
				t.Errorf("%s: %v", what, each)
			}
		}
	}
	claim := &devices.Claim{Uid: "u1"}
	allocated := []*devices.AllocatedDevice{{
		Request: "r", Pool: devcluster.NodeName, Device: "gpu-0",
		BindingConditions: []string{"BindingConditions"}, BindingFailureConditions: []string{"BindingFailureConditions"},
	}}
	allocations := func(claims ...*devices.ClaimToBind) {
		t.Helper()
		if err := driver.Allocations(t.Context(), claims); err != nil {
			t.Error(err)
		}
	}
	allocations(&devices.ClaimToBind{Claim: claim, Devices: allocated})
	expect("waiting", 1)
	if _, err := driver.Prepare(t.Context(), &devices.PrepareDevicesRequest{Claim: claim, Devices: allocated}); err != nil {
		t.Error(err)
	}
	expect("waiting and prepared", 1)
	allocations()
	expect("prepared", 1)
	if err := driver.Unprepare(t.Context(), &devices.UnprepareDevicesRequest{Claim: claim}); err != nil {
		t.Error(err)
	}
	expect("unprepared", 0)
}

func TestOptions(t *testing.T) {
	t.Setenv("NUM_DEVICES", "3")
	t.Setenv("DEVICE_PROFILE", "of-the-environment")
	o, err := parse([]string{"--device-profile=net"})
	if err != nil || o.count != 3 || o.driverName != "net.example.com" {
		t.Errorf("%+v, %v", o, err)
	}
	t.Setenv("NUM_DEVICES", "many")
	if _, err := parse(nil); err == nil || !strings.Contains(err.Error(), `NUM_DEVICES="many"`) {
		t.Error(err)
	}
	if _, err := newDriver(options{profileName: "tpu"}); err == nil || !strings.Contains(err.Error(), `"tpu"`) {
		t.Error(err)
	}
}

func optionsOf(t *testing.T, args []string) options {
	t.Helper()
	o, err := parse(args)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func driverWith(t *testing.T, args []string) nodekeeper.DeviceDriver {
	t.Helper()
	driver, err := newDriver(optionsOf(t, args))
	if err != nil {
		t.Fatal(err)
	}
	// As the agent's request for the devices does.
	driver.Node.Set(devcluster.NodeName)
	return driver
}

// recorded decodes the lines of a file.
func recorded[T any](t *testing.T, name string) (all []T) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var each T
		if err := json.Unmarshal(lines.Bytes(), &each); err != nil {
			t.Fatal(err)
		}
		all = append(all, each)
	}
	if lines.Err() != nil || len(all) == 0 {
		t.Fatalf("%s: %d lines, %v", name, len(all), lines.Err())
	}
	return all
}
