// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/installplan/unpack"
	"github.com/olmcore/olm/olmcore"
)

func TestGatherSweepReadsTheNamespace(t *testing.T) {
	sub := subscription("a", refersTo("install-1"))
	p := owned(numbered(1, complete), sub)
	p.Status.Plan = append(p.Status.Plan, roleStep("a.v1", "r"), crdStep("a.v1", "v1"))
	elsewhere := numbered(2, complete, inNamespace("other"))
	objects := []olmcore.Object{sub, p, owned(numbered(3, complete), sub), elsewhere, csv("a.v1"), unpackedBundle(0), &corev1.ConfigMap{ObjectMeta: meta("x")}}
	r := reader(t, objects...)
	in, err := sweep.Gather(t.Context(), r, ns, installplan.Config{})
	require.NoError(t, err)
	require.Len(t, in.InstallPlans.Items, 2)
	require.Len(t, in.Subscriptions.Items, 1)
	require.Len(t, in.ConfigMaps.Items, 1)
	require.Equal(t, olmcore.Found(elsewhere), in.OtherPlans)
	require.Len(t, in.Steps, 1, "only of the plan that a Subscription refers to")
	in.Now = noon
	same(t, []string{"StepObjectAbsent", "StepObjectAbsent"}, reasons(swept(t, in)))

	for _, kind := range []string{"Namespace", "Subscription", "InstallPlan", "ConfigMap", "ClusterServiceVersion", "Role", "CustomResourceDefinition"} {
		r := reader(t, objects...)
		r.fail = kind
		_, err := sweep.Gather(t.Context(), r, ns, installplan.Config{})
		require.Error(t, err, kind)
	}
	r = reader(t, sub, p)
	_, err = sweep.Gather(t.Context(), r, ns, installplan.Config{})
	require.NoError(t, err)
	require.Equal(t, 1, r.kinds["InstallPlan"], "other namespaces matter to unpacked bundles alone")
}

func TestGatherUnpackReadsTheCatalogsNamespace(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: inOLM(bundleName)}
	pod := &corev1.Pod{ObjectMeta: inOLM("pod")}
	pod.Labels = map[string]string{"job-name": bundleName}
	full := unpacking(t)
	objects := []olmcore.Object{full.CatalogSource, full.ConfigMap, full.Role, full.RoleBinding, full.ServiceAccount, job, pod, group()}
	in, err := unpack.Gather(t.Context(), reader(t, objects...), ns, lookup(t), images)
	require.NoError(t, err)
	require.NotNil(t, in.CatalogSource)
	require.Equal(t, olmcore.Found(job), in.Jobs, "found without its label")
	require.Equal(t, olmcore.Found(pod), in.Pods)
	require.Len(t, in.OperatorGroups.Items, 1)
	for _, kind := range []string{"CatalogSource", "ConfigMap", "Role", "RoleBinding", "ServiceAccount", "Job", "Pod", "OperatorGroup"} {
		r := reader(t, objects...)
		r.fail = kind
		_, err := unpack.Gather(t.Context(), r, ns, lookup(t), images)
		require.Error(t, err, kind)
	}
	_, err = unpack.Gather(t.Context(), reader(t), ns, v1alpha1.BundleLookup{}, images)
	require.NoError(t, err, "Unpack says what is wrong with it")
}

func TestSweepAffected(t *testing.T) {
	refers := numbered(1, complete, func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Resource.Manifest = reference() }, inNamespace("other"))
	for _, c := range []struct {
		o    olmcore.Object
		want []types.NamespacedName
	}{
		{subscription("a"), []types.NamespacedName{{Namespace: ns}}},
		{numbered(1, complete), []types.NamespacedName{{Namespace: ns}}},
		{refers, []types.NamespacedName{{Namespace: ns}, {Namespace: "other"}}},
		{unpackedBundle(0), []types.NamespacedName{{}}},
		{installed(crdObject("v1"), true), []types.NamespacedName{{}}},
		{&corev1.Pod{ObjectMeta: meta("p")}, nil},
		{(*v1alpha1.InstallPlan)(nil), nil},
	} {
		same(t, c.want, sweep.Affected(c.o))
	}
}

// TestWhatChangesASweepIsAffected: taking any object away changes the result only
// when SweepAffected names the namespace.
func TestWhatChangesASweepIsAffected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anySweepInput(t)
		text := func(in sweep.Input) string {
			r := swept(t, in)
			return fmt.Sprint(describe(r), reasons(r), r.RequeueAfter/time.Second)
		}
		want := text(in)
		named := func(o olmcore.Object) {
			require.Contains(t, olmcore.ExpandKeys(sweep.Affected(o), []types.NamespacedName{{Namespace: ns, Name: "x"}}),
				types.NamespacedName{Namespace: ns, Name: "x"}, "%s", olmcore.KeyOf(o))
		}
		for i, p := range in.InstallPlans.Items {
			without := in
			without.InstallPlans.Items = append(append([]*v1alpha1.InstallPlan{}, in.InstallPlans.Items[:i]...), in.InstallPlans.Items[i+1:]...)
			if text(without) != want {
				named(p)
			}
		}
		for i, s := range in.Subscriptions.Items {
			without := in
			without.Subscriptions.Items = append(append([]*v1alpha1.Subscription{}, in.Subscriptions.Items[:i]...), in.Subscriptions.Items[i+1:]...)
			if text(without) != want {
				named(s)
			}
		}
	})
}
