// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// TestABundleImageIsUnpackedAndInstalled: a Job unpacks it, the first try fails,
// the second succeeds, and the plan refers to what was unpacked.
func TestABundleImageIsUnpackedAndInstalled(t *testing.T) {
	w := newWorld(t)
	w.olm.InstallPlan = installplan.Config{OPMImage: "opm:1", UtilImage: "util:1"}
	const image = "registry.example.com/alpha-bundle:1"
	w.olm.Resolve = func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
		answer, err := w.resolve(ctx, r, request)
		for i := range answer.Operators {
			answer.Operators[i].Bundle = olmcore.Bundle{Image: image}
		}
		return answer, err
	}
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, time.Minute)
	end := func(kind batchv1.JobConditionType) (name string) {
		jobs, err := olmcore.List[*batchv1.Job](t.Context(), w.cluster, "olm", nil)
		require.NoError(t, err)
		for _, j := range jobs {
			if len(j.Status.Conditions) > 0 {
				continue
			}
			after := j.DeepCopy()
			after.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.cluster.Now())}}
			require.NoError(t, w.cluster.UpdateStatus(after))
			name = j.Labels["operatorframework.io/bundle-unpack-ref"]
		}
		require.NotEmpty(t, name, "no Job runs")
		return name
	}
	end(batchv1.JobFailed)
	w.run(t, 5*time.Minute+time.Minute)
	require.Empty(t, w.plans())
	name := end(batchv1.JobComplete)
	require.NoError(t, fake.Edit(w.cluster, "olm", name, func(cm *corev1.ConfigMap) {
		cm.Annotations = map[string]string{"olm.sourceImage": image}
		cm.Data = map[string]string{}
		for i, o := range bundle("alpha", 1) {
			values, err := olmcore.ToMap(o)
			require.NoError(t, err)
			data, err := json.Marshal(values)
			require.NoError(t, err)
			cm.Data[fmt.Sprintf("%d.json", i)] = string(data)
		}
	}))
	w.run(t, 2*time.Minute)
	w.requireInstalled(t, "alpha")
	require.Len(t, w.plans(), 1)
	require.Contains(t, w.plans()[0].Status.Plan[0].Resource.Manifest, `"kind":"ConfigMap","name":"`+name)
}

// TestANamespaceUnpacksFewBundlesAtATime checks that Subscriptions to many operators of a shared catalog do not fill
// its namespace with Jobs, and that all bundles are unpacked one after the other.
func TestANamespaceUnpacksFewBundlesAtATime(t *testing.T) {
	const bundles, atATime = 35, 10
	w := newWorld(t)
	w.olm.InstallPlan = installplan.Config{OPMImage: "opm:1", UtilImage: "util:1"}
	images := map[string]string{} // the version of each
	w.olm.Resolve = func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
		answer, err := w.resolve(ctx, r, request)
		if len(answer.Operators) != 1 {
			return answer, err
		}
		for i := range bundles {
			o := answer.Operators[0]
			o.Name = fmt.Sprintf("op%d.v1", i)
			o.Bundle = olmcore.Bundle{Image: fmt.Sprintf("registry.example.com/op%d:1", i)}
			images[o.Bundle.Image] = o.Name
			answer.Operators = append(answer.Operators, o)
		}
		answer.Operators = answer.Operators[1:]
		return answer, err
	}
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	unpacked := 0
	for range bundles {
		w.run(t, time.Minute)
		jobs, err := olmcore.List[*batchv1.Job](t.Context(), w.cluster, "olm", nil)
		require.NoError(t, err)
		running := 0
		for _, j := range jobs {
			if len(j.Status.Conditions) > 0 {
				continue
			}
			running++
			after := j.DeepCopy()
			after.Status.Conditions = []batchv1.JobCondition{{
				Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.cluster.Now()),
			}}
			require.NoError(t, w.cluster.UpdateStatus(after))
			image := j.Spec.Template.Spec.InitContainers[1].Image
			require.NoError(t, fake.Edit(w.cluster, "olm", j.Labels["operatorframework.io/bundle-unpack-ref"], func(cm *corev1.ConfigMap) {
				cm.Annotations = map[string]string{"olm.sourceImage": image}
				cm.Data = map[string]string{
					"csv.json": `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",` +
						`"metadata":{"name":"` + images[image] + `"}}`,
				}
			}))
		}
		require.LessOrEqual(t, running, atATime)
		if unpacked += running; running == 0 {
			break
		}
	}
	require.Equal(t, bundles, unpacked)
}
