// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan/unpack"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// admitted is a Job as a webhook may make of it.
func admitted(t *rapid.T, a olmcore.Create) olmcore.Create {
	if !Maybe(t, "altered") {
		return a
	}
	j := a.Object.DeepCopyObject().(*batchv1.Job)
	j.Spec.ActiveDeadlineSeconds = new(rapid.Int64Range(1, 9999).Draw(t, "deadline"))
	j.Spec.Template.Spec.Tolerations = nil
	j.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{}
	a.Object = j
	return a
}

// faults strike any write of a run.
func faults(t *rapid.T, c *fake.Cluster) {
	for range rapid.IntRange(0, 4).Draw(t, "faults") {
		c.Inject(fake.Fault{
			Verb: rapid.SampledFrom([]olmcore.Verb{"", olmcore.VerbCreate, olmcore.VerbUpdate, olmcore.VerbUpdateStatus}).Draw(t, "verb"),
			Nth:  rapid.IntRange(1, 8).Draw(t, "nth"),
			Mode: rapid.SampledFrom([]fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}).Draw(t, "mode"),
		})
	}
}

// TestBundleIsUnpackedInTheEnd: whatever writes are lost, one Job at a time runs, none runs before its permissions, and
// once one of them succeeds the bundle is there.
//
// OLM's case: a failed try is repeated, a successful one not.
func TestBundleIsUnpackedInTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := NewWorld(&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}})
		require.NoError(t, err)
		faults(t, c)
		failures := rapid.IntRange(0, 3).Draw(t, "failures")
		var failedAt time.Time
		for range 400 {
			c.RestartController()
			in, err := unpack.Gather(t.Context(), c, NS, Lookup(t), Images)
			require.NoError(t, err)
			in.Now = c.Now()
			out := unpackRound(t, in)
			if out.Bundle != nil {
				require.Empty(t, out.Actions)
				return
			}
			_ = olmcore.Run(t.Context(), c, out.Actions)
			jobs, err := olmcore.List[*batchv1.Job](t.Context(), c, "olm", nil)
			require.NoError(t, err)
			running := slices.DeleteFunc(jobs, func(j *batchv1.Job) bool { return len(j.Status.Conditions) > 0 })
			require.LessOrEqual(t, len(running), 1)
			for _, j := range running {
				require.False(t, c.Now().Before(failedAt.Add(5*time.Minute)), "too soon")
				binding, err := olmcore.Get[*rbacv1.RoleBinding](t.Context(), c, "olm", BundleName)
				require.NoError(t, err)
				require.NotNil(t, binding)
				end := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.Now())}
				if failures > 0 {
					failures--
					end.Type, end.Reason, failedAt = batchv1.JobFailed, "BackoffLimitExceeded", c.Now()
				} else {
					require.NoError(t, fake.Edit(c, "olm", BundleName, func(cm *corev1.ConfigMap) {
						cm.Annotations = map[string]string{"olm.sourceImage": BundleImage}
						cm.Data = map[string]string{"csv.yaml": EtcdCSV}
					}))
				}
				after := j.DeepCopy()
				after.Status.Conditions = []batchv1.JobCondition{end}
				require.NoError(t, c.UpdateStatus(after))
			}
			c.Advance(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "time"))
		}
		t.Fatal("it is never unpacked")
	})
}

// TestOneBundleForTwoNamespaces: they have time limits of their own and share the Job that unpacks it. Whoever is
// asked, in whatever order, and whatever a webhook makes of the Job, no namespace deletes it, there is one at a time,
// and its name is its own.
func TestOneBundleForTwoNamespaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := NewWorld(&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}})
		require.NoError(t, err)
		for _, name := range []string{"one", "two"} {
			require.NoError(t, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "group", Annotations: map[string]string{
				unpack.AnnotationTimeout:       rapid.SampledFrom([]string{"30s", "1m", "500ms", "0", "2h"}).Draw(t, "timeout"),
				unpack.AnnotationRetryInterval: rapid.SampledFrom([]string{"0", "1m", "10m"}).Draw(t, "interval"),
			}}}))
		}
		names := map[string]bool{}
		ask := func(namespace string) []olmcore.Action {
			in, err := unpack.Gather(t.Context(), c, namespace, Lookup(t), Images)
			require.NoError(t, err)
			in.Now = c.Now()
			actions := unpackRound(t, in).Actions
			for i, a := range actions {
				verb, target, _ := a.Describe()
				require.NotEqual(t, olmcore.VerbDelete, verb, "%s is deleted", target)
				if verb == olmcore.VerbCreate && target.Kind == "Job" {
					require.False(t, names[target.Name], "%s is used again", target.Name)
					require.LessOrEqual(t, len(target.Name), 63)
					names[target.Name] = true
					actions[i] = admitted(t, a.(olmcore.Create))
				}
			}
			require.NoError(t, olmcore.Run(t.Context(), c, actions))
			return actions
		}
		for range rapid.IntRange(6, 20).Draw(t, "rounds") {
			ask(rapid.SampledFrom([]string{"one", "two"}).Draw(t, "who"))
			jobs, err := olmcore.List[*batchv1.Job](t.Context(), c, "olm", nil)
			require.NoError(t, err)
			running := 0
			for _, j := range jobs {
				if len(j.Status.Conditions) > 0 {
					continue
				}
				running++
				if len(jobs) < 5 && Maybe(t, "fails") {
					after := j.DeepCopy()
					after.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.Now())}}
					require.NoError(t, c.UpdateStatus(after))
				}
			}
			require.LessOrEqual(t, running, 1)
			c.Advance(rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "time"))
		}
		c.Advance(time.Hour)
		for range 4 {
			ask("one")
			ask("two")
		}
		require.Empty(t, ask("one"), "it comes to rest")
		require.Empty(t, ask("two"), "it comes to rest")
	})
}
