// SPDX-License-Identifier: Apache-2.0

package invariant_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// One input shows six laws of a reconcile function: the same answer each time, in any order of lists, at any time of
// day, without a write to what it was handed.
func ExampleLaws() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group", UID: "1", ResourceVersion: "2"}}
	in := operatorgroup.Input{Now: now, OperatorGroup: group, Namespaces: olmcore.Found(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank"}},
	)}
	sound := func(in operatorgroup.Input) (olmcore.Result, error) {
		out, err := operatorgroup.Reconcile(in)
		return out.Result, err
	}
	fmt.Println("sound:", invariant.Laws(sound, in))
	careless := func(in operatorgroup.Input) (olmcore.Result, error) {
		in.OperatorGroup.Status.Namespaces = []string{"ops"}
		return olmcore.Result{}, nil
	}
	fmt.Println("careless breaks a law:", invariant.Laws(careless, in) != nil)
	// Output:
	// sound: <nil>
	// careless breaks a law: true
}

// The fake cluster is an Executor and a Reader, and is held to what yours is held to.
func ExampleCheckExecutor() {
	c := fake.NewCluster(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	if err := c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}}); err != nil {
		panic(err)
	}
	fmt.Println(invariant.CheckExecutor(context.Background(), c, c, "ops"))
	// Output:
	// <nil>
}

// A world of OLM and one catalog comes to rest, and then asks for nothing.
func ExampleSettles() {
	fmt.Println(invariant.Settles(invariant.World{
		New: func() (*fake.Cluster, error) {
			c := fake.NewCluster(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
			c.AutoCreateNamespaces = true
			return c, errors.Join(c.Node("a").Create(nil), c.Create(&v1alpha1.CatalogSource{
				ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
				Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "example.com/catalog:v1"},
			}))
		},
		Controllers: func(*fake.Cluster) []controller.Controller { return (&olm.OLM{}).Controllers() },
		Rounds:      10,
	}))
	// Output:
	// <nil>
}
