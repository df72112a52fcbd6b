package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

const (
	gpuMemory  = 80 << 30
	gpuCompute = 100
)

// gpus are GPUs of 80 Gi. One with partitions has counters, which its partitions and the device of the whole GPU consume.
type gpus struct{ options }

func (g gpus) pool(node string) *devices.Pool {
	pool := &devices.Pool{}
	for number, uuid := range uuids("gpu", node, g.count) {
		name := fmt.Sprintf("gpu-%d", number)
		device := func(suffix string, parts int, attributes map[string]*devices.Attribute) *devices.Device {
			device := hardware(name+suffix, number, uuid, "LATEST-GPU-MODEL")
			device.AllowMultipleAllocations = g.gpuShared
			device.Capacity = g.capacity(parts)
			for key, value := range attributes {
				device.Attributes[key] = value
			}
			if g.gpuPartitions > 0 {
				device.ConsumesCounters = []*devices.CounterConsumption{{CounterSet: name + "-counters", Counters: partOfGPU(parts)}}
			}
			if g.bindingConditions {
				device.BindingConditions = []string{"BindingConditions"}
				device.BindingFailureConditions = []string{"BindingFailureConditions"}
			}
			return device
		}
		if g.gpuPartitions <= 0 {
			pool.Devices = append(pool.Devices, device("", 1, nil))
			continue
		}
		pool.SharedCounters = append(pool.SharedCounters, &devices.CounterSet{Name: name + "-counters", Counters: partOfGPU(1)})
		for partition := range g.gpuPartitions {
			pool.Devices = append(pool.Devices, device(fmt.Sprintf("-partition-%d", partition), g.gpuPartitions, map[string]*devices.Attribute{
				"partitionable": {Bool: new(true)}, "partition": {Int: new(int64(partition))},
			}))
		}
		pool.Devices = append(pool.Devices, device("-full", 1, map[string]*devices.Attribute{
			"partitionable": {Bool: new(true)}, "full": {Bool: new(true)},
		}))
	}
	return pool
}

// partOfGPU returns what one of several equal parts of a GPU has.
func partOfGPU(parts int) map[string]string {
	return map[string]string{
		"memory":  resource.NewQuantity(gpuMemory/int64(parts), resource.BinarySI).String(),
		"compute": resource.NewQuantity(gpuCompute/int64(parts), resource.DecimalSI).String(),
	}
}

// capacity lets requests take any number of steps of a shared GPU.
func (g gpus) capacity(parts int) map[string]*devices.Capacity {
	steps := map[string]string{"memory": "1Gi", "compute": "1"}
	capacity := map[string]*devices.Capacity{}
	for name, amount := range partOfGPU(parts) {
		capacity[name] = &devices.Capacity{Value: amount}
		if g.gpuShared {
			capacity[name].RequestPolicy = &devices.RequestPolicy{
				Default: amount, ValidRange: &devices.ValidRange{Min: steps[name], Max: amount, Step: steps[name]},
			}
		}
	}
	return capacity
}

func (gpus) variables(device *devices.AllocatedDevice) ([]string, error) {
	config := &gpuConfig{}
	for _, each := range device.Configuration {
		config = &gpuConfig{}
		if err := decode(each.Parameters, gpuConfigKind, config); err != nil {
			return nil, err
		}
	}
	setting, err := config.setting()
	if err != nil {
		return nil, err
	}
	name := "GPU_DEVICE_" + strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(device.Device, "gpu-"), "-", "_"))
	variables := []string{name + "=" + device.Device}
	for _, each := range setting {
		variables = append(variables, name+"_"+each)
	}
	for _, capacity := range []string{"memory", "compute"} {
		if consumed, isShare := device.ConsumedCapacity[capacity]; isShare {
			variables = append(variables, fmt.Sprintf("%s_%s=%s", name, strings.ToUpper(capacity), consumed))
		}
	}
	return variables, nil
}

var gpuConfigKind = kind{APIVersion: "gpu.resource.example.com/v1alpha1", Kind: "GpuConfig"}

// gpuConfig says how containers share a GPU: by default in time slices of the default length.
type gpuConfig struct {
	kind    `json:",inline"`
	Sharing *struct {
		Strategy          string `json:"strategy"`
		TimeSlicingConfig *struct {
			Interval string `json:"interval"`
		} `json:"timeSlicingConfig"`
		SpacePartitioningConfig *struct {
			PartitionCount int `json:"partitionCount"`
		} `json:"spacePartitioningConfig"`
	} `json:"sharing"`
}

// setting validates the configuration, and returns variables without the prefix of the device.
func (c *gpuConfig) setting() ([]string, error) {
	const timeSlicing, spacePartitioning = "TimeSlicing", "SpacePartitioning"
	if c.Sharing == nil {
		return []string{"SHARING_STRATEGY=" + timeSlicing, "TIMESLICE_INTERVAL=Default"}, nil
	}
	strategy, slicing, partitioning := c.Sharing.Strategy, c.Sharing.TimeSlicingConfig, c.Sharing.SpacePartitioningConfig
	switch strategy {
	case timeSlicing:
		interval := "Default"
		if slicing != nil {
			interval = slicing.Interval
		}
		if !slices.Contains([]string{"Default", "Short", "Medium", "Long"}, interval) {
			return nil, fmt.Errorf("unknown time-slice interval: %q", interval)
		}
		if partitioning != nil {
			return nil, fmt.Errorf("spacePartitioningConfig does not apply to the strategy %s", strategy)
		}
		return []string{"SHARING_STRATEGY=" + strategy, "TIMESLICE_INTERVAL=" + interval}, nil
	case spacePartitioning:
		count := 1
		if partitioning != nil {
			count = partitioning.PartitionCount
		}
		if count < 0 {
			return nil, fmt.Errorf("invalid partition count: %d", count)
		}
		if slicing != nil {
			return nil, fmt.Errorf("timeSlicingConfig does not apply to the strategy %s", strategy)
		}
		return []string{"SHARING_STRATEGY=" + strategy, fmt.Sprintf("PARTITION_COUNT=%d", count)}, nil
	default:
		return nil, fmt.Errorf("unknown GPU sharing strategy: %q", strategy)
	}
}
