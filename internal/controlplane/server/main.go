// SPDX-License-Identifier: Apache-2.0

// Command server is a whole control plane in one binary: it is etcd, kube-apiserver or kube-controller-manager,
// whichever name it is called by. So the packages that they share are compiled and linked once.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the request metrics of the clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	go exitWithParent(os.Getppid())
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	}
	name := filepath.Base(os.Args[0])
	switch command := commands[name]; {
	case name == "etcd":
		etcdmain.Main(os.Args)
	case command != nil:
		os.Exit(cli.Run(command()))
	default:
		fmt.Fprintf(os.Stderr, "%s: call me etcd, kube-apiserver or kube-controller-manager\n", name)
		os.Exit(2)
	}
}

// exitWithParent ends the process once its parent is gone, so that no test can leave it behind, however it ended. A
// process without a parent belongs to another one from then on.
func exitWithParent(parent int) {
	for os.Getppid() == parent {
		time.Sleep(250 * time.Millisecond)
	}
	os.Exit(1)
}
