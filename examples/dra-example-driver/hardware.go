package main

import (
	"fmt"
	"math/rand"

	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

// hardware returns a device with the attributes that GPUs and network interfaces have.
func hardware(name string, index int, uuid, model string) *devices.Device {
	return &devices.Device{Name: name, Attributes: map[string]*devices.Attribute{
		"index":         {Int: new(int64(index))},
		"uuid":          {String_: &uuid},
		"model":         {String_: &model},
		"driverVersion": {Version: new("1.0.0")},
	}}
}

// uuids returns those that upstream's driver has on the node, so that a device keeps its UUID when one replaces the other.
func uuids(prefix, node string, count int) []string {
	var seed int64
	for _, character := range node {
		seed = 31*seed + int64(character)
	}
	source := rand.New(rand.NewSource(seed))
	var all []string
	for range count {
		var id [16]byte
		_, _ = source.Read(id[:])
		all = append(all, fmt.Sprintf("%s-%x-%x-%x-%x-%x", prefix, id[:4], id[4:6], id[6:8], id[8:10], id[10:]))
	}
	return all
}
