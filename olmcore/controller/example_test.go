// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// labeller returns a controller that adds a label to each ConfigMap.
func labeller() controller.Controller {
	return controller.Controller{
		Name: "labeller", Kinds: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")},
		Reconcile: func(
			ctx context.Context, r olmcore.Reader, key types.NamespacedName, _ time.Time, _ olmcore.LastResults,
		) (olmcore.Result, error) {
			before, err := olmcore.Get[*corev1.ConfigMap](ctx, r, key.Namespace, key.Name)
			if err != nil || before == nil || before.Labels["team"] != "" {
				return olmcore.Result{}, err
			}
			after := before.DeepCopy()
			after.Labels = map[string]string{"team": key.Namespace}
			update := olmcore.UpdateOf(before, after, olmcore.Cause{Reason: "LabelMissing"})
			return olmcore.Result{Actions: []olmcore.Action{update}}, nil
		},
	}
}

func clusterWithConfigMap() *fake.Cluster {
	c := fake.NewCluster(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	c.AutoCreateNamespaces = true
	if err := c.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "settings"}}); err != nil {
		panic(err)
	}
	return c
}

// A controller of yours is appended to those of OLM, and runs with them in a simulated cluster.
func ExampleController() {
	c := clusterWithConfigMap()
	driver := &fake.Driver{Cluster: c, Controllers: append((&olm.OLM{}).Controllers(), labeller())}
	if err := driver.Settle(context.Background()); err != nil {
		panic(err)
	}
	fmt.Print(controller.Format(driver.Events))
	// Output:
	// 12:00:00  labeller ops/settings: update ConfigMap ops/settings (LabelMissing)
}

// A Runner reconciles one key and returns the delay until the next reconcile.
func ExampleRunner() {
	ctx, c := context.Background(), clusterWithConfigMap()
	runner := &controller.Runner{Controller: labeller(), Reader: c, Executor: c}
	runner.OnReport = func(report controller.Report) { fmt.Print(report) }
	key := types.NamespacedName{Namespace: "ops", Name: "settings"}
	for range 2 {
		again, err := runner.Run(ctx, key, c.Now())
		fmt.Println("again after", again, err)
	}
	// Output:
	// labeller ops/settings: update ConfigMap ops/settings (LabelMissing)
	// again after 1s <nil>
	// again after 0s <nil>
}

// AfterAction stops a reconcile between two of its actions.
func ExampleRunner_afterAction() {
	ctx, c := context.Background(), clusterWithConfigMap()
	runner := &controller.Runner{Controller: labeller(), Reader: c, Executor: c}
	runner.AfterAction = func(e controller.Event) error {
		_, target, _ := e.Action.Describe()
		return fmt.Errorf("%s changed", target)
	}
	_, err := runner.Run(ctx, types.NamespacedName{Namespace: "ops", Name: "settings"}, c.Now())
	fmt.Println(err)
	// Output:
	// after "labeller ops/settings: update ConfigMap ops/settings (LabelMissing)": ConfigMap ops/settings changed
}
