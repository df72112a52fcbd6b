// Command kube-apiserver is the API server of the module version in go.mod, built for the end-to-end suite only.
// Its version is stamped by the linker (see prepare.ts), so that /version tells which Kubernetes is running.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
