// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/metrics"
	"github.com/olmcore/olm/olmcore"
)

// Metrics are a prometheus.Collector: read from a cache, told what the controllers report.
func ExampleNew() {
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{&v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
		Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "catalog.example.com:50051"},
		Status:     v1alpha1.CatalogSourceStatus{GRPCConnectionState: &v1alpha1.GRPCConnectionState{LastObservedState: "READY"}},
	}}, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	m := metrics.New(&controllers.Options{})
	m.Read(snapshot) // a manager's cache; each controller.Runner gets m.OnReport
	exposed := prometheus.NewRegistry()
	exposed.MustRegister(m)
	families, err := exposed.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "catalog") {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output:
	// catalog_source_count 1
}
