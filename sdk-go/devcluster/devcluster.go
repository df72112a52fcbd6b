// Package devcluster starts a development cluster for tests of plugins: an API server in memory, a simulated container
// runtime, and the agent. It runs `nodekeeper dev` of the npm package `nodekeeper`, which needs Node 24, or the program that
// the environment variable NODEKEEPER_AGENT names.
package devcluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// NodeName is the name of the cluster's node.
const NodeName = "dev-node"

const stopTimeout = 15 * time.Second

// For tests of this package.
var timeout = 3 * time.Minute

// Cluster is a development cluster that runs until the end of the test.
type Cluster struct {
	// PluginDirectory is the directory that the agent watches: SocketDir of a plugin's options.
	PluginDirectory string
	// APIServer is the URL of the API server, Agent that of the agent's status server.
	APIServer, Agent string
	t                testing.TB
}

// Start starts a cluster. It fails the test if the cluster does not start.
func Start(t testing.TB) *Cluster {
	t.Helper()
	// Not t.TempDir: paths of sockets are at most 107 bytes.
	directory, err := os.MkdirTemp("", "nk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	words := append(program(), "dev", "--data-dir", directory, "--node-name", NodeName, "--server", "127.0.0.1:0", "--no-plugin")
	command := exec.Command(words[0], words[1:]...)
	// npx does not forward signals.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("%s can't be run: %v; install the npm package nodekeeper, or set NODEKEEPER_AGENT", words[0], err)
	}
	t.Cleanup(func() { stop(command) })
	cluster := &Cluster{PluginDirectory: filepath.Join(directory, "plugins_registry"), t: t}
	// Ends the wait for the addresses.
	timer := time.AfterFunc(timeout, func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	if !cluster.readAddresses(output) {
		_ = command.Wait()
		t.Fatalf("%s ended without a cluster, or has none after %s: %s", strings.Join(words, " "), timeout, problems.String())
	}
	return cluster
}

func program() []string {
	agent := os.Getenv("NODEKEEPER_AGENT")
	switch {
	case agent == "":
		return []string{"npx", "--no-install", "nodekeeper"}
	case regexp.MustCompile(`\.[cm]?[jt]s$`).MatchString(agent):
		return []string{"node", agent}
	default:
		return []string{agent}
	}
}

func stop(command *exec.Cmd) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait()
	}()
	_ = syscall.Kill(-command.Process.Pid, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(stopTimeout):
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		<-ended
	}
}

var addressLine = regexp.MustCompile(`^  (API server|agent) +(http://\S+)`)

// readAddresses reads the summary that the command prints, and discards what follows.
func (c *Cluster) readAddresses(output io.Reader) bool {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if found := addressLine.FindStringSubmatch(lines.Text()); found == nil {
			continue
		} else if found[1] == "agent" {
			c.Agent = found[2]
		} else {
			c.APIServer = found[2]
		}
		if c.Agent != "" && c.APIServer != "" {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return true
		}
	}
	return false
}

// Read decodes the JSON of an address: the API server's objects, such as c.APIServer + "/api/v1/nodes", or the agent's
// state, such as c.Agent + "/api/v1/plugins".
func Read(url string, into any) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// PublishedDevices returns the names of the devices in the driver's ResourceSlices.
func (c *Cluster) PublishedDevices(driver string) ([]string, error) {
	var slices struct {
		Items []struct {
			Spec struct {
				Driver  string
				Devices []struct{ Name string }
			}
		}
	}
	if err := Read(c.APIServer+"/apis/resource.k8s.io/v1/resourceslices", &slices); err != nil {
		return nil, err
	}
	var names []string
	for _, slice := range slices.Items {
		if slice.Spec.Driver != driver {
			continue
		}
		for _, device := range slice.Spec.Devices {
			names = append(names, device.Name)
		}
	}
	return names, nil
}

// Until waits for a condition; an error is not yet the condition. After three minutes it fails the test. It ends the test if
// that has failed meanwhile, as in a goroutine that serves the plugin.
func (c *Cluster) Until(what string, look func() (bool, error)) {
	c.t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		if c.t.Failed() {
			c.t.FailNow()
		}
		isTrue, err := look()
		if isTrue && err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("waited without success: %s (last error: %v)", what, err)
		}
	}
}
