// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
)

// A catalog moves to another node when its own falls silent.
func ExampleOLM() {
	c := fake.NewCluster(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	c.AutoCreateNamespaces = true
	if err := errors.Join(c.Node("a").Create(nil), c.Node("b").Create(nil), c.Create(&v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
		Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "example.com/catalog:v1"},
	})); err != nil {
		panic(err)
	}
	// Controllers of your own are appended to these.
	driver := &fake.Driver{Cluster: c, Controllers: (&olm.OLM{}).Controllers()}
	ctx := context.Background()
	if err := errors.Join(driver.RunUntilIdle(ctx, time.Minute), c.Node("a").Fail()); err != nil {
		panic(err)
	}
	driver.Events = nil
	if err := driver.RunFor(ctx, 5*time.Minute); err != nil {
		panic(err)
	}
	for _, e := range driver.Events {
		if e.Action != nil {
			verb, target, cause := e.Action.Describe()
			if target.Kind == "Pod" {
				fmt.Println(verb, target.Kind, cause.Message)
			}
		}
	}
	// Output:
	// create Pod replaces community-qjzoqdqnso: node a is unreachable
	// delete Pod node a is unreachable, and another Pod serves
	// delete Pod node a is unreachable
}
