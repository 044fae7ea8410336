// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
	"github.com/olmcore/olm/subscription/resolution"
)

// TestAPlanThatFailedMidwayIsMadeAgain: the plan of an upgrade creates the new version, and then a ClusterRole is
// rejected. If a user deletes the plan, a new one does the open steps. While the cause lasts, that one fails, too, and
// nothing more happens.
func TestAPlanThatFailedMidwayIsMadeAgain(t *testing.T) {
	for name, approval := range map[string]v1alpha1.Approval{
		"approval is automatic": v1alpha1.ApprovalAutomatic,
		"approval is manual":    v1alpha1.ApprovalManual,
	} {
		t.Run(name, func(t *testing.T) {
			w, packages := newWorld(t), map[string]resolution.Package{}
			one := resolution.ChannelEntry{Name: csvName("alpha", 1)}
			w.offer(t, packages, "alpha", one)
			require.NoError(t, w.subscribe("alpha", approval))
			w.run(t, time.Minute)
			require.NoError(t, w.approveAll())
			w.run(t, 5*time.Minute)
			require.Equal(t, "alpha.v1.0.0 Succeeded", w.phases())

			rejected := w.rejectRoles("alpha.v2")
			w.offer(t, packages, "alpha", one, resolution.ChannelEntry{Name: csvName("alpha", 2), Replaces: one.Name})
			w.poke(t)
			require.NoError(t, w.approveAll())
			w.run(t, 20*time.Minute)
			require.Equal(t, "alpha.v1.0.0 Replacing, alpha.v2.0.0 Pending", w.phases())
			failed := w.planOf(t, "alpha.v2.0.0")
			require.Equal(t, v1alpha1.InstallPlanPhaseFailed, failed.Status.Phase)

			require.NoError(t, w.cluster.Delete(olmcore.RefOf(failed)))
			w.run(t, time.Minute)
			require.NoError(t, w.approveAll())
			w.run(t, 20*time.Minute)
			failed = w.planOf(t, "alpha.v2.0.0")
			require.Equal(t, v1alpha1.InstallPlanPhaseFailed, failed.Status.Phase, "the cause lasts")
			require.Equal(t, "alpha.v1.0.0 Replacing, alpha.v2.0.0 Pending", w.phases())
			w.requireNothingIsAsked(t)

			*rejected = false
			require.NoError(t, w.cluster.Delete(olmcore.RefOf(failed)))
			w.run(t, time.Minute)
			require.NoError(t, w.approveAll())
			w.run(t, 30*time.Minute)
			require.Equal(t, "alpha.v2.0.0 Succeeded", w.phases())
			require.Equal(t, "alpha.v2.0.0", w.status("alpha").InstalledCSV)
			require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status("alpha").State)
			w.requireNothingIsAsked(t)
		})
	}
}

// rejectRoles makes the API server reject new ClusterRoles of a version as long as the returned value is true.
func (w *world) rejectRoles(version string) *bool {
	rejected := new(true)
	w.cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if *rejected && verb == olmcore.VerbCreate && target.Kind == "ClusterRole" && strings.HasPrefix(target.Name, version) {
			return invalid(target)
		}
		return nil
	}
	return rejected
}

// TestAFirstInstallationThatFailedMidwayIsMadeAgain: the plan creates the first version, and then a ClusterRole is
// rejected. If a user deletes the plan, a new one does the open steps once the cause is gone. The version is not
// deleted.
func TestAFirstInstallationThatFailedMidwayIsMadeAgain(t *testing.T) {
	for name, approval := range map[string]v1alpha1.Approval{
		"approval is automatic": v1alpha1.ApprovalAutomatic,
		"approval is manual":    v1alpha1.ApprovalManual,
	} {
		t.Run(name, func(t *testing.T) {
			w, packages := newWorld(t), map[string]resolution.Package{}
			w.offer(t, packages, "alpha", resolution.ChannelEntry{Name: csvName("alpha", 1)})
			rejected := w.rejectRoles("alpha.v1")
			require.NoError(t, w.subscribe("alpha", approval))
			w.run(t, time.Minute)
			require.NoError(t, w.approveAll())
			w.run(t, 20*time.Minute)
			require.Equal(t, "alpha.v1.0.0 Pending", w.phases())
			version := w.csvs()[0]
			failed := w.planOf(t, version.Name)
			require.Equal(t, v1alpha1.InstallPlanPhaseFailed, failed.Status.Phase)
			w.requireNothingIsAsked(t)

			*rejected = false
			require.NoError(t, w.cluster.Delete(olmcore.RefOf(failed)))
			w.run(t, time.Minute)
			require.NoError(t, w.approveAll())
			w.run(t, 30*time.Minute)
			require.Equal(t, "alpha.v1.0.0 Succeeded", w.phases())
			require.Equal(t, version.UID, w.csvs()[0].UID, "the version is kept")
			require.Equal(t, version.Name, w.status("alpha").InstalledCSV)
			require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status("alpha").State)
			w.requireNothingIsAsked(t)
		})
	}
}

// TestTheAdviceForAFailedPlanLeadsToAnInstalledVersion: a user deletes the version and the plan, at once or with a
// pause, in the order that health names them or in the other.
func TestTheAdviceForAFailedPlanLeadsToAnInstalledVersion(t *testing.T) {
	for _, upgrade := range []bool{false, true} {
		for _, pause := range []time.Duration{-1, 0, 5 * time.Second} { // -1: before a controller observes anything
			for _, planFirst := range []bool{false, true} {
				t.Run(fmt.Sprintf("upgrade %t, pause %s, plan first %t", upgrade, pause, planFirst), func(t *testing.T) {
					followTheAdvice(t, upgrade, pause, planFirst)
				})
			}
		}
	}
}

func followTheAdvice(t *testing.T, upgrade bool, pause time.Duration, planFirst bool) {
	w, packages := newWorld(t), map[string]resolution.Package{}
	entries, name := []resolution.ChannelEntry{{Name: csvName("alpha", 1)}}, csvName("alpha", 1)
	if upgrade {
		w.offer(t, packages, "alpha", entries...)
		require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
		w.run(t, 5*time.Minute)
		name = csvName("alpha", 2)
		entries = append(entries, resolution.ChannelEntry{Name: name, Replaces: entries[0].Name})
	}
	rejected := w.rejectRoles(name[:8])
	w.offer(t, packages, "alpha", entries...)
	if upgrade {
		w.poke(t)
	} else {
		require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	}
	w.run(t, 20*time.Minute)
	version := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, name)
	require.Equal(t, v1alpha1.CSVPhasePending, version.Status.Phase)
	if upgrade { // old plans are deleted in time
		require.NoError(t, w.cluster.Delete(olmcore.RefOf(w.planOf(t, entries[0].Name)).Unversioned()))
	}
	remove := []olmcore.Ref{olmcore.RefOf(version).Unversioned(), olmcore.RefOf(w.planOf(t, name)).Unversioned()}
	if planFirst {
		slices.Reverse(remove)
	}
	*rejected = false
	if pause < 0 { // as if the version did not have a finalizer
		require.NoError(t, fake.Edit(w.cluster, namespace, name, func(c *v1alpha1.ClusterServiceVersion) { c.Finalizers = nil }))
	}
	for _, ref := range remove {
		require.NoError(t, w.cluster.Delete(ref))
		if pause >= 0 {
			w.run(t, pause)
		}
	}
	w.run(t, 30*time.Minute)
	require.Equal(t, name+" Succeeded", w.phases())
	require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status("alpha").State)
	w.requireNothingIsAsked(t)
}

// TestAPlanThatFailedMidwayIsFinished: the plan is kept. It stays Failed and nothing is written while the cause lasts.
// Once that is gone, the plan does its open steps.
func TestAPlanThatFailedMidwayIsFinished(t *testing.T) {
	w, packages := newWorld(t), map[string]resolution.Package{}
	w.offer(t, packages, "alpha", resolution.ChannelEntry{Name: csvName("alpha", 1)})
	rejected := w.rejectRoles("alpha.v1")
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, 20*time.Minute)
	require.Equal(t, "alpha.v1.0.0 Pending", w.phases())
	failed := w.planOf(t, "alpha.v1.0.0")
	require.Equal(t, v1alpha1.InstallPlanPhaseFailed, failed.Status.Phase)
	before := w.cluster.ResourceVersion()
	w.run(t, time.Hour)
	require.Equal(t, before, w.cluster.ResourceVersion(), "something was written at rest")

	*rejected = false
	w.run(t, 15*time.Minute)
	require.Equal(t, "alpha.v1.0.0 Succeeded", w.phases())
	require.Equal(t, failed.UID, w.planOf(t, "alpha.v1.0.0").UID, "the plan is kept")
	require.Equal(t, v1alpha1.InstallPlanPhaseComplete, w.planOf(t, "alpha.v1.0.0").Status.Phase)
	require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status("alpha").State)
	w.requireNothingIsAsked(t)
}

// TestAnUpgradeThatOLMLeftAtAStoredVersionIsFinished: OLM created the new version before it met a definition that still
// lists a removed version as stored. Once that version is migrated, the plan does its open steps. If the plan was
// deleted, or it was deleted before OLM recorded that it failed, a new one does.
func TestAnUpgradeThatOLMLeftAtAStoredVersionIsFinished(t *testing.T) {
	for name, remove := range map[string]func(w *world, plan *v1alpha1.InstallPlan) error{
		"the plan is kept": func(*world, *v1alpha1.InstallPlan) error { return nil },
		"the version and the plan are deleted": func(w *world, plan *v1alpha1.InstallPlan) error {
			return errors.Join(w.cluster.Delete(olmcore.RefOf(w.csvs()[1])), w.cluster.Delete(olmcore.RefOf(plan)))
		},
		"the plan is deleted": func(w *world, plan *v1alpha1.InstallPlan) error { return w.cluster.Delete(olmcore.RefOf(plan)) },
		"the plan is deleted, and OLM recorded it as missing": func(w *world, plan *v1alpha1.InstallPlan) error {
			s := fake.Find[*v1alpha1.Subscription](w.cluster, namespace, "alpha").DeepCopy()
			s.Status.Conditions = []v1alpha1.SubscriptionCondition{{Type: v1alpha1.SubscriptionInstallPlanMissing, Status: corev1.ConditionTrue,
				Reason: v1alpha1.ReferencedInstallPlanNotFound, LastTransitionTime: new(metav1.NewTime(w.cluster.Now()))}}
			return errors.Join(w.cluster.Delete(olmcore.RefOf(plan)), w.cluster.UpdateStatus(s))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, packages := newWorld(t), map[string]resolution.Package{}
			one := resolution.ChannelEntry{Name: csvName("alpha", 1)}
			w.offer(t, packages, "alpha", one)
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
			w.run(t, 5*time.Minute)
			require.NoError(t, w.storeVersion("v1alpha1"))
			w.offer(t, packages, "alpha", one, resolution.ChannelEntry{Name: csvName("alpha", 2), Replaces: one.Name})
			w.poke(t)
			w.run(t, 5*time.Minute)
			plan := w.planOf(t, "alpha.v2.0.0")
			require.Equal(t, v1alpha1.InstallPlanPhaseFailed, plan.Status.Phase)
			require.Contains(t, plan.Status.Message, "removes version v1alpha1 that is listed as a stored version")

			// OLM applies steps one by one.
			version, err := decode.Decode([]byte(plan.Status.Plan[0].Resource.Manifest))
			require.NoError(t, err)
			version.SetNamespace(namespace)
			require.NoError(t, w.cluster.Create(version))
			w.run(t, 30*time.Minute)
			require.Equal(t, "alpha.v1.0.0 Replacing, alpha.v2.0.0 Pending", w.phases())

			require.NoError(t, w.storeVersion("v1"))
			require.NoError(t, remove(w, plan))
			w.run(t, 30*time.Minute)
			require.Equal(t, "alpha.v2.0.0 Succeeded", w.phases())
			require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status("alpha").State)
			w.requireNothingIsAsked(t)
		})
	}
}

// storeVersion makes one version that which objects of package alpha's definition are stored in. The definition serves
// it.
func (w *world) storeVersion(name string) error {
	key := olmcore.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "alphas.example.com"}
	return w.cluster.Edit(key, func(o olmcore.Object) {
		crd := o.(*apiextensionsv1.CustomResourceDefinition)
		crd.Status.StoredVersions = []string{name}
		if name != "v1" {
			version := *crd.Spec.Versions[0].DeepCopy()
			version.Name, version.Storage = name, false
			crd.Spec.Versions = append(crd.Spec.Versions, version)
		}
	})
}
