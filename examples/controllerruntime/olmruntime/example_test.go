// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore/controller"
)

// A manager of one's own runs two of the library's controllers. Its cache is shared with them.
func ExampleSetupWithManager() {
	config, stop := exampleCluster() // ctrl.GetConfigOrDie()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // ctrl.SetupSignalHandler()
	defer cancel()

	mgr, err := ctrl.NewManager(config, ctrl.Options{
		NewCache: olmruntime.NewCache,
		Metrics:  server.Options{BindAddress: "0"},
	})
	if err != nil {
		panic(err)
	}
	_, err = olmruntime.SetupWithManager(mgr, olmruntime.Options{
		OnReport: func(r controller.Report) {
			fmt.Print(r)
			cancel()
		},
	}, controllers.Group)
	if err != nil {
		panic(err)
	}
	// Controllers of one's own: ctrl.NewControllerManagedBy(mgr).For(...).Complete(...)
	if err := mgr.Start(ctx); err != nil {
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
