// SPDX-License-Identifier: Apache-2.0

package olmdynamic_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore/controller"
)

// Every controller runs over every key once, on what the API server has now.
func ExampleNew() {
	config, stop := exampleCluster() // clientcmd.BuildConfigFromFlags("", kubeconfig)
	defer stop()

	cluster, err := olmdynamic.New(config)
	if err != nil {
		panic(err)
	}
	options := controllers.Options{KubernetesVersion: cluster.Version}
	runners := controllers.New(&options).Runners(cluster, cluster) // it reads, and it writes
	for _, r := range runners {
		r.OnReport = func(report controller.Report) { fmt.Print(report) }
	}
	if err := controller.Pass(context.Background(), runners, time.Now); err != nil {
		panic(err)
	}
	// Output:
	// group ops/tenants: updateStatus OperatorGroup ops/tenants (StatusChanged)
	// group ops/tenants: create ClusterRole olm.og.tenants.admin-3llWAzaOEap9lFXHwfqcpMhKHiQBNXfcyOxAlU (GroupChanged)
	// group ops/tenants: create ClusterRole olm.og.tenants.edit-8q2s2AK7Okc8YeBvJgQLrnvdm9Lpf0TeZ4iJLy (GroupChanged)
	// group ops/tenants: create ClusterRole olm.og.tenants.view-7DzUo7NvLjSFChPYuxAsYKVHub92GTGU8Lr8Ha (GroupChanged)
}

// exampleCluster is a cluster with an OperatorGroup.
func exampleCluster() (config *rest.Config, stop func()) {
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	if err := c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "tenants"}}); err != nil {
		panic(err)
	}
	front := httptest.NewServer(apiserver.New(c))
	return &rest.Config{Host: front.URL}, front.Close
}
