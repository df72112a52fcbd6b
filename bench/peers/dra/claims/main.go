// Prepares ResourceClaims as a DRA driver does that serves the kubelet by itself, with the helper package of
// k8s.io/dynamic-resource-allocation: the peer of the agent's devices module in `npm run bench:peers`.
//
// The helper serves the kubelet's calls and reads the claims from the API server. What a driver has to do for a claim of
// a device that needs no preparation is here: a CDI file, and a record of the prepared claims as the kubelet's own
// checkpoints are written.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"
)

const kind = "accelerators.example.com/claim"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	name := flag.String("driver", "", "the driver's name")
	node := flag.String("node", "", "the node's name")
	registry := flag.String("registry", "", "the directory where the kubelet finds registration sockets")
	data := flag.String("data", "", "the driver's own directory")
	cdi := flag.String("cdi", "", "the directory of CDI files")
	qps := flag.Float64("qps", 20, "requests a second; the burst is twice as many")
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := run(*kubeconfig, *registry, float32(*qps), &driver{name: *name, node: *node, data: *data, cdi: *cdi, prepared: map[types.UID][]string{}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, registry string, qps float32, driver *driver) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = qps, int(2*qps)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(context.Background(), driver,
		kubeletplugin.DriverName(driver.name),
		kubeletplugin.NodeName(driver.node),
		kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(registry),
		kubeletplugin.PluginDataDirectoryPath(driver.data),
		// Claims of one device each do not touch each other.
		kubeletplugin.Serialize(false),
		kubeletplugin.GRPCVerbosity(-1),
	)
	if err != nil {
		return err
	}
	defer helper.Stop()
	fmt.Println("{}")
	// Until the other side closes it.
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

type driver struct {
	name, node, data, cdi string

	mutex sync.Mutex
	// The devices of each prepared claim.
	prepared map[types.UID][]string
}

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		results[claim.UID] = d.prepare(claim)
	}
	return results, nil
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = d.unprepare(claim.UID)
	}
	return results, nil
}

func (d *driver) HandleError(_ context.Context, err error, message string) {
	fmt.Fprintln(os.Stderr, message, err)
}

func (d *driver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) (result kubeletplugin.PrepareResult) {
	var names []string
	var edits []cdiDevice
	for _, allocated := range claim.Status.Allocation.Devices.Results {
		if allocated.Driver != d.name {
			continue
		}
		name := fmt.Sprintf("%s-%s", claim.UID, allocated.Device)
		names = append(names, allocated.Device)
		edits = append(edits, editsOf(name, allocated.Device, claim))
		result.Devices = append(result.Devices, kubeletplugin.Device{
			Requests:     []string{allocated.Request},
			PoolName:     allocated.Pool,
			DeviceName:   allocated.Device,
			CDIDeviceIDs: []string{kind + "=" + name},
		})
	}
	if err := writeFile(d.cdiFile(claim.UID), cdiSpec{Version: "0.6.0", Kind: kind, Devices: edits}); err != nil {
		return kubeletplugin.PrepareResult{Err: err}
	}
	if err := d.record(func() { d.prepared[claim.UID] = names }); err != nil {
		return kubeletplugin.PrepareResult{Err: err}
	}
	return result
}

func (d *driver) unprepare(uid types.UID) error {
	if err := os.Remove(d.cdiFile(uid)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return d.record(func() { delete(d.prepared, uid) })
}

// record writes all prepared claims, so that they are known after a restart.
func (d *driver) record(change func()) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	change()
	return writeFile(filepath.Join(d.data, "prepared.json"), d.prepared)
}

func (d *driver) cdiFile(uid types.UID) string {
	return filepath.Join(d.cdi, string(uid)+".json")
}

type cdiSpec struct {
	Version string      `json:"cdiVersion"`
	Kind    string      `json:"kind"`
	Devices []cdiDevice `json:"devices"`
}

type cdiDevice struct {
	Name  string   `json:"name"`
	Edits cdiEdits `json:"containerEdits"`
}

type cdiEdits struct {
	Env         []string        `json:"env"`
	DeviceNodes []cdiDeviceNode `json:"deviceNodes"`
}

type cdiDeviceNode struct {
	Path     string `json:"path"`
	HostPath string `json:"hostPath"`
}

func editsOf(name, device string, claim *resourceapi.ResourceClaim) cdiDevice {
	env := []string{"ACCELERATOR=" + device}
	for _, configuration := range claim.Status.Allocation.Devices.Config {
		if configuration.Opaque != nil {
			env = append(env, "CONFIGURATION="+string(configuration.Opaque.Parameters.Raw))
		}
	}
	node := cdiDeviceNode{Path: "/dev/" + device, HostPath: "/dev/null"}
	return cdiDevice{Name: name, Edits: cdiEdits{Env: env, DeviceNodes: []cdiDeviceNode{node}}}
}

// writeFile replaces a file as a whole.
func writeFile(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
