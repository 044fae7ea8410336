// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// TestComponentLabelsComeWithTheWriteThatMakesAnObject, so that no second writer is
// needed.
func TestComponentLabelsComeWithTheWriteThatMakesAnObject(t *testing.T) {
	const a, b = olmcore.ComponentLabelPrefix + "a." + ns, olmcore.ComponentLabelPrefix + "b." + ns
	steps := []*v1alpha1.Step{
		csvStep("a.v1"), csvStep("b.v1"), crdStep("a.v1", "v1"), roleStep("a.v1", "r"),
		step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "c", `{"metadata":{"name":"c"}}`),
		step("b.v1", "", "v1", "ConfigMap", "new", `{"metadata":{"name":"new"}}`),
		step("a.v1", "", "v1", "ConfigMap", "ours", `{"metadata":{"name":"ours"},"data":{"a":"1"}}`),
		step("b.v1", "operators.coreos.com", "v1alpha1", "Subscription", "dep", `{"metadata":{"name":"dep"},"spec":{"name":"b","startingCSV":"b.v1"}}`),
		step("", "", "v1", "ConfigMap", "of no version", `{"metadata":{"name":"of no version"}}`),
	}
	sub := subscription("a", refersTo("install-x"), func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "a.v1" })
	ours := managed(&corev1.ConfigMap{ObjectMeta: meta("ours")})
	written := map[string]map[string]string{}
	for _, versions := range [][]olmcore.Object{nil, {csv("a.v1"), csv("b.v1")}} {
		in := input(plan(installing, steps, ownedBy(sub), started(time.Second)), with(sub, ours), with(versions...))
		for _, action := range reconcile(t, in).Actions {
			_, target, _ := action.Describe()
			labels := map[string]string{}
			for key := range objectOf(action).GetLabels() {
				if key == a || key == b {
					labels[key] = ""
				}
			}
			written[target.Kind+" "+target.Name] = labels
		}
	}
	delete(written, "InstallPlan install-x")
	of := func(keys ...string) map[string]string {
		labels := map[string]string{}
		for _, key := range keys {
			labels[key] = ""
		}
		return labels
	}
	same(t, map[string]map[string]string{
		"ClusterServiceVersion a.v1": of(a), "ClusterServiceVersion b.v1": of(b), "Subscription dep": of(b),
		"CustomResourceDefinition things.example.com": of(a), "Role r": of(a), "ClusterRole c": of(a),
		"ConfigMap new": of(b), "ConfigMap ours": of(), "ConfigMap of no version": of(),
	}, written)

	// They are no content: an object that lacks one is not written for it.
	done := applied(t, roleStep("a.v1", "r"), csv("a.v1"))
	require.NotContains(t, done.GetLabels(), a)
	in := input(plan(installing, []*v1alpha1.Step{roleStep("a.v1", "r")}, ownedBy(sub), started(time.Second)), with(sub, csv("a.v1"), done))
	require.Equal(t, complete, statusOf(in, reconcile(t, in)).Phase)
}

func objectOf(a olmcore.Action) olmcore.Object {
	switch a := a.(type) {
	case olmcore.Create:
		return a.Object
	case olmcore.Update:
		return a.After
	case olmcore.UpdateStatus:
		return a.After
	}
	return nil
}
