// Package nodekeeper serves plugins of Nodekeeper, the node agent beside the kubelet: device drivers, reporter plugins and
// eviction plugins. An author writes functions that return devices, contents or pods; the package has the socket, the
// registration with the agent, the streams and the end of the process.
//
// Each instance of a plugin has its own socket, "<name>-<8 hexadecimal digits>.sock" in the directory that the agent
// watches. In a rolling update with surge, the agent therefore registers the new instance before the old one ends. Sockets
// of instances that were killed are removed at the start. A socket that disappears is served again.
//
// Package devcluster starts a development cluster for tests.
package nodekeeper

//go:generate npx buf generate .. --template buf.gen.yaml --path ../proto/nodekeeper/devices/v1alpha2 --path ../proto/nodekeeper/eviction --path ../proto/pluginregistration --path ../proto/reporterplugin --path ../proto/evictionplugin --path ../proto/k8s/core
