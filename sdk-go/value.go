package nodekeeper

import "context"

// Value is a report of what other functions of the plugin set: Prepare, for example, sets the status of the devices.
//
//	statuses := nodekeeper.NewValue[*devices.DeviceStatus]()
//	driver := nodekeeper.DeviceDriver{Status: statuses.Report, …}
type Value[T any] struct{ values *latest[[]T] }

// NewValue returns a value that is not reported before it is set.
func NewValue[T any]() *Value[T] { return &Value[T]{newLatest[[]T]()} }

// Set replaces the value. What was set must not be modified.
func (v *Value[T]) Set(value []T) { v.values.set(value) }

// Report is a Report.
func (v *Value[T]) Report(ctx context.Context, send func([]T)) error {
	return v.values.each(ctx, func(value []T) error {
		send(value)
		return nil
	})
}

// NodeName is the name of the node, which the agent tells when it asks for the devices.
//
//	node := nodekeeper.NewNodeName()
//	driver := nodekeeper.DeviceDriver{Node: node, …}
type NodeName struct{ name *latest[string] }

// NewNodeName returns a name that is not known before the agent asks for the devices.
func NewNodeName() *NodeName { return &NodeName{newLatest[string]()} }

// Get returns the name, and waits until it is known or the context ends.
func (n *NodeName) Get(ctx context.Context) (string, error) {
	name, _, err := n.name.after(ctx, 0)
	return name, err
}

// Set is for tests of drivers.
func (n *NodeName) Set(name string) { n.name.set(name) }
