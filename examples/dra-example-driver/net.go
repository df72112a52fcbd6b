package main

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

// networkInterfaces are interfaces of 100 Gbit/s that requests share: each takes a virtual function and bandwidth.
type networkInterfaces struct{ options }

func (n networkInterfaces) pool(node string) *devices.Pool {
	pool := &devices.Pool{}
	bandwidth := &devices.Capacity{Value: "100G", RequestPolicy: &devices.RequestPolicy{
		Default: "1G", ValidRange: &devices.ValidRange{Min: "100M", Max: "100G", Step: "1M"},
	}}
	functions := &devices.Capacity{Value: "100", RequestPolicy: &devices.RequestPolicy{Default: "1", ValidValues: []string{"1"}}}
	for number, uuid := range uuids("net", node, n.count) {
		device := hardware(fmt.Sprintf("nic-%d", number), number, uuid, "LATEST-NET-MODEL")
		device.AllowMultipleAllocations = true
		device.Capacity = map[string]*devices.Capacity{
			"vfs": functions, "ingressBandwidth": bandwidth, "egressBandwidth": bandwidth,
		}
		pool.Devices = append(pool.Devices, device)
	}
	return pool
}

func (networkInterfaces) variables(device *devices.AllocatedDevice) ([]string, error) {
	config := &netConfig{}
	for _, each := range device.Configuration {
		config = &netConfig{}
		if err := decode(each.Parameters, netConfigKind, config); err != nil {
			return nil, err
		}
	}
	var variables []string
	for _, direction := range []struct {
		name  string
		burst uint64
	}{{"ingress", config.Burst.Ingress}, {"egress", config.Burst.Egress}} {
		name := "NET_DEVICE_" + strings.TrimPrefix(device.Device, "nic-") + "_" + strings.ToUpper(direction.name)
		if direction.burst/8 >= math.MaxUint32 {
			return nil, fmt.Errorf("invalid %sBurst: burst cannot be more than 4GB", direction.name)
		}
		if direction.burst > 0 {
			variables = append(variables, fmt.Sprintf("%s_BURST=%d", name, direction.burst))
		}
		consumed, isShare := device.ConsumedCapacity[direction.name+"Bandwidth"]
		if !isShare {
			continue
		}
		rate, err := resource.ParseQuantity(consumed)
		if err != nil {
			return nil, fmt.Errorf("%sBandwidth %q: %w", direction.name, consumed, err)
		}
		variables = append(variables, fmt.Sprintf("%s_RATE=%d", name, rate.Value()))
	}
	return variables, nil
}

var netConfigKind = kind{APIVersion: "net.resource.example.com/v1alpha1", Kind: "NetConfig"}

// netConfig limits the bursts of an interface, in bits. 0: no limit.
type netConfig struct {
	kind  `json:",inline"`
	Burst struct {
		Ingress uint64 `json:"ingressBurst"`
		Egress  uint64 `json:"egressBurst"`
	} `json:"bwBurst"`
}
