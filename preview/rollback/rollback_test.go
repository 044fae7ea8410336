// SPDX-License-Identifier: Apache-2.0

package rollback_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/preview/rollback"
)

type bundle = upgradetest.Bundle

var vault = types.NamespacedName{Namespace: upgradetest.Namespace, Name: upgradetest.Subscription}

func advised(t *testing.T, w *upgradetest.World, to string, acceptLoss bool) rollback.Advice {
	t.Helper()
	a, err := rollback.Run(context.Background(), w.Cluster, vault, to, acceptLoss, w.Cluster.Now(), w.OLM.Options)
	require.NoError(t, err)
	return a
}

// lines are the steps of a way, one each.
func lines(a rollback.Advice) (all []string) {
	for _, s := range a.Steps {
		if s.Record != nil {
			all = append(all, fmt.Sprintf("%s %s: %s", s.Record.Verb, s.Record.Target.Kind, s.Record.Cause.Message))
		} else {
			all = append(all, "wait: "+s.Wait)
		}
	}
	return all
}

// goBack carries out a way as the package says: one step, then it asks again.
func goBack(t *testing.T, w *upgradetest.World, to string, acceptLoss bool) {
	t.Helper()
	for range 30 {
		a := advised(t, w, to, acceptLoss)
		to = a.To
		require.Empty(t, a.Refused)
		if len(a.Steps) == 0 {
			return
		}
		if a.Steps[0].Action != nil {
			require.NoError(t, olmcore.Run(context.Background(), w.Cluster, []olmcore.Action{a.Steps[0].Action}))
		} else {
			w.Run(t)
		}
	}
	t.Fatal("it does not end")
}

const broken = "registry.example.com/broken:2"

func breakSecond(_, second *bundle) {
	second.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = broken
}

// TestFailedForward: "The upgrade fails, the old version is not coming back by itself, and I want it back."
func TestFailedForward(t *testing.T) {
	w := upgradetest.New(t, breakSecond)
	w.Cluster.Image(broken).Break("ImagePullBackOff")
	w.Approve(t)
	require.Equal(
		t,
		[]v1alpha1.ClusterServiceVersionPhase{v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseFailed},
		[]v1alpha1.ClusterServiceVersionPhase{w.Phase(upgradetest.First), w.Phase(upgradetest.Second)},
	)

	a := advised(t, w, "", false)
	require.Equal(t, []string{"vault.v2.0.0", "vault.v1.0.0", ""}, []string{a.From, a.To, a.Refused})
	require.Equal(t, []string{
		"update Subscription: newer versions wait for approval, and vault.v1.0.0 is where to start from",
		"delete ClusterServiceVersion: an earlier version takes its place",
		"wait: ClusterServiceVersion vault.v2.0.0 is gone",
		"updateStatus Subscription: vault.v1.0.0 is there again",
	}, lines(a)[:4], "%s", strings.Join(lines(a), "\n"))
	goBack(t, w, "", false)
	requireBack(t, w)
}

// requireBack demands that the first version runs, and the second one does not come by itself.
func requireBack(t *testing.T, w *upgradetest.World) {
	t.Helper()
	w.Run(t)
	w.Run(t)
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, w.Phase(upgradetest.First))
	require.Empty(t, w.Phase(upgradetest.Second))
	require.Equal(t, upgradetest.First, w.Subscribed().Status.InstalledCSV)
	require.Equal(t, v1alpha1.ApprovalManual, w.Subscribed().Spec.InstallPlanApproval)
}

// TestFailedWithAChangedDefinition: "The upgrade failed, and its CustomResourceDefinitions are there already."
func TestFailedWithAChangedDefinition(t *testing.T) {
	w := upgradetest.New(t, func(first, second *bundle) {
		breakSecond(first, second)
		second.CRD.Spec.Versions[0] = upgradetest.Version("v1", true, "size", "rooms")
		second.CRD.Spec.Versions = append(second.CRD.Spec.Versions, upgradetest.Version("v2", false, "size", "rooms"))
	})
	w.Cluster.Image(broken).Break("ImagePullBackOff")
	w.Approve(t)
	a := advised(t, w, "", false)
	require.Empty(t, a.Refused)
	require.Empty(t, a.Preview.CustomResourceDefinitions, "it serves the version before as well, so it stays, and nothing is lost")
	goBack(t, w, "", false)
	requireBack(t, w)
}

// TestFailedWithADefinitionThatTheOldVersionCannotUse: what was served before is not any more, and what is stored by
// then the old definition does not know.
func TestFailedWithADefinitionThatTheOldVersionCannotUse(t *testing.T) {
	w := upgradetest.New(t, func(first, second *bundle) {
		breakSecond(first, second)
		second.CSV.Spec.CustomResourceDefinitions.Owned[0].Version = "v2"
		old := upgradetest.Version("v1", false, "size")
		old.Served = false
		second.CRD.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{old, upgradetest.Version("v2", true, "size")}
	})
	w.Cluster.Image(broken).Break("ImagePullBackOff")
	w.Approve(t)
	for _, acceptLoss := range []bool{false, true} {
		a := advised(t, w, "", acceptLoss)
		require.Empty(t, a.Steps)
		require.Contains(t, a.Refused, "it does not lead there: ClusterServiceVersion vault.v1.0.0 runs again does not come")
		require.Contains(t, a.Refused, "CustomResourceDefinition vaults.bank.example.com")
	}
}

// TestRegrettedAfterSuccess: "It runs, and we do not want it."
func TestRegrettedAfterSuccess(t *testing.T) {
	w := upgradetest.New(t, nil)
	w.Approve(t)
	candidates, err := rollback.Candidates(rollback.Input{Namespace: vault.Namespace, Subscription: vault.Name, Objects: w.Cluster.Objects()})
	require.NoError(t, err)
	require.Equal(t, []string{upgradetest.First}, candidates)
	a := advised(t, w, "", false)
	require.Equal(t, []string{
		"update Subscription: newer versions wait for approval, and vault.v1.0.0 is where to start from",
		"delete ClusterServiceVersion: an earlier version takes its place",
		"wait: ClusterServiceVersion vault.v2.0.0 is gone",
		"updateStatus Subscription: vault.v1.0.0 is to be installed again",
		"wait: the Subscription is resolved to vault.v1.0.0",
		"update InstallPlan: it brings vault.v1.0.0 back",
	}, lines(a)[:6])
	require.Equal(t, "vault.v2.0.0", a.From)
	goBack(t, w, a.To, false)
	requireBack(t, w)
}

// TestRegrettedAndNotInACatalogAnyMore: what no catalog has cannot come back.
func TestRegrettedAndNotInACatalogAnyMore(t *testing.T) {
	w := upgradetest.New(t, nil)
	w.Approve(t)
	second := upgradetest.BundleOf(2)
	second.CSV.Spec.Replaces = ""
	w.Offer(t, second)
	w.Run(t)
	a := advised(t, w, upgradetest.First, false)
	require.Empty(t, a.Steps)
	require.Contains(t, a.Refused, "the Subscription is resolved to vault.v1.0.0")
}

// TestLossesAreRefused: fields that the old schema lacks are dropped, unless that is accepted.
func TestLossesAreRefused(t *testing.T) {
	w := upgradetest.New(t, func(_, second *bundle) {
		second.CRD.Spec.Versions[0] = upgradetest.Version("v1", true, "size", "rooms")
	})
	w.Approve(t)
	a := advised(t, w, "", false)
	require.Empty(t, a.Steps)
	require.Equal(
		t,
		[]string{"custom resources of vaults.bank.example.com lose spec.versions[v1].schema.openAPIV3Schema.properties[spec].properties[rooms]"},
		a.Losses,
	)
	require.Equal(t, "something would be lost: "+a.Losses[0], a.Refused)
	goBack(t, w, upgradetest.First, true)
	requireBack(t, w)
}

// TestWhatIsStoredDecides: custom resources are stored as the old definition does not have them.
func TestWhatIsStoredDecides(t *testing.T) {
	w := upgradetest.New(t, func(_, second *bundle) {
		second.CRD.Spec.Versions[0].Storage = false
		second.CRD.Spec.Versions = append(second.CRD.Spec.Versions, upgradetest.Version("v2", true, "size"))
	})
	w.Approve(t)
	a := advised(t, w, "", true)
	require.Empty(t, a.Steps)
	require.Contains(t, a.Refused, "risk of data loss updating")
}

// TestCustomResourcesStay: a version whose cleanup would delete them is told not to, first.
func TestCustomResourcesStay(t *testing.T) {
	w := upgradetest.New(t, func(_, second *bundle) { second.CSV.Spec.Cleanup.Enabled = true })
	w.Approve(t)
	require.NoError(t, w.Cluster.Create(upgradetest.Vault("v1", "gold", map[string]any{"size": int64(1)})))
	a := advised(t, w, "", false)
	require.Equal(t, []string{
		"update Subscription: newer versions wait for approval, and vault.v1.0.0 is where to start from",
		"update ClusterServiceVersion: its cleanup would delete the custom resources",
		"delete ClusterServiceVersion: an earlier version takes its place",
	}, lines(a)[:3])
	goBack(t, w, a.To, false)
	requireBack(t, w)
	_, err := olmcore.GetKind(
		context.Background(),
		w.Cluster,
		schema.GroupVersionKind{Group: "bank.example.com", Version: "v1", Kind: "Vault"},
		vault.Namespace,
		"gold",
	)
	require.NoError(t, err, "the custom resource")
}

// TestCustomResourcesThatWouldNotFit: the plan of the old version judges them as any plan does.
func TestCustomResourcesThatWouldNotFit(t *testing.T) {
	w := upgradetest.New(t, func(first, _ *bundle) {
		spec := first.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Required = []string{"size"}
		first.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	})
	w.Approve(t)
	options := w.OLM.Options
	options.Judge = func(_ context.Context, _ olmcore.Reader, changes []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) {
		require.Len(t, changes, 1)
		return []installplan.ResourceVerdict{
			{
				CustomResourceDefinition: changes[0].Before.Name,
				Version:                  "v1",
				Namespace:                "ops",
				Name:                     "gold",
				New:                      []string{"spec.size: Required value"},
			},
		}, nil
	}
	a, err := rollback.Run(context.Background(), w.Cluster, vault, "", true, w.Cluster.Now(), options)
	require.NoError(t, err)
	require.Empty(t, a.Steps)
	require.Contains(t, a.Refused, `"ops/gold": updated validation is too restrictive: spec.size: Required value`)
}

// TestDependants: an operator elsewhere needs a version that the old definition does not serve.
func TestDependants(t *testing.T) {
	w := upgradetest.New(t, func(_, second *bundle) {
		second.CRD.Spec.Versions = append(second.CRD.Spec.Versions, upgradetest.Version("v1beta1", false, "size"))
	})
	w.Approve(t)
	// Nothing is stored as v1beta1.
	user := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "shop.v1"}}
	user.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: upgradetest.Definition, Version: "v1beta1", Kind: "Vault"}}
	require.NoError(t, w.Cluster.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}, user))
	a := advised(t, w, "", false)
	require.Empty(t, a.Steps)
	require.NotEmpty(t, a.Refused)
	require.Equal(t, []string{"shop.v1 in namespace apps needs version v1beta1 of vaults.bank.example.com"}, a.Dependants)
}

// TestVersionsOfOthersAreLeftAlone: a version of another Subscription is not deleted, whatever it says to replace.
func TestVersionsOfOthersAreLeftAlone(t *testing.T) {
	w := upgradetest.New(t, breakSecond)
	w.Cluster.Image(broken).Break("ImagePullBackOff")
	w.Approve(t)
	other := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: vault.Namespace, Name: "shop.v1"}}
	other.Spec.Replaces = upgradetest.Second
	sub := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: vault.Namespace, Name: "shop"},
		Spec:       &v1alpha1.SubscriptionSpec{Package: "shop"},
	}
	sub.Status.InstalledCSV = other.Name
	objects := append(w.Cluster.Objects(), other, sub)
	a, err := rollback.Advise(
		context.Background(),
		rollback.Input{
			Now:          w.Cluster.Now(),
			Namespace:    vault.Namespace,
			Subscription: vault.Name,
			To:           upgradetest.First,
			Objects:      objects,
			Options:      w.OLM.Options,
		},
	)
	require.NoError(t, err)
	for _, s := range a.Steps {
		require.False(t, s.Record != nil && s.Record.Target.Name == other.Name, "%v", s)
	}
	a, err = rollback.Advise(
		context.Background(),
		rollback.Input{
			Now:          w.Cluster.Now(),
			Namespace:    vault.Namespace,
			Subscription: vault.Name,
			To:           other.Name,
			Objects:      objects,
			Options:      w.OLM.Options,
		},
	)
	require.NoError(t, err)
	require.Equal(t, "shop.v1 is another Subscription's", a.Refused)
}

// TestTheFirstActionIsExact: it can be done as it is, and is refused where the object became another one.
func TestTheFirstActionIsExact(t *testing.T) {
	w := upgradetest.New(t, nil)
	w.Approve(t)
	a := advised(t, w, "", false)
	require.Equal(t, w.Subscribed().ResourceVersion, a.Steps[0].Record.Target.ResourceVersion)
	require.NoError(t, fake.Edit(w.Cluster, vault.Namespace, vault.Name, func(s *v1alpha1.Subscription) { s.Spec.Channel = "other" }))
	require.ErrorIs(t, olmcore.Run(context.Background(), w.Cluster, []olmcore.Action{a.Steps[0].Action}), olmcore.ErrStale)
}

func TestInput(t *testing.T) {
	w := upgradetest.New(t, nil)
	good := rollback.Input{
		Now:          w.Cluster.Now(),
		Namespace:    vault.Namespace,
		Subscription: vault.Name,
		Objects:      w.Cluster.Objects(),
		Options:      w.OLM.Options,
	}
	for want, change := range map[string]func(*rollback.Input){
		"Now is zero":           func(in *rollback.Input) { in.Now = time.Time{} },
		"Namespace is empty":    func(in *rollback.Input) { in.Namespace = "" },
		"Subscription is empty": func(in *rollback.Input) { in.Subscription = "" },
	} {
		in := good
		change(&in)
		_, err := rollback.Advise(context.Background(), in)
		require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		require.ErrorContains(t, err, want)
	}
	other := good
	other.Subscription = "other"
	_, err := rollback.Advise(context.Background(), other)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = rollback.Candidates(other)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = rollback.Advise(ended, good)
	require.ErrorIs(t, err, context.Canceled)
	first := upgradetest.Offering(t, []bundle{upgradetest.BundleOf(1)})
	first.Approve(t)
	require.Equal(t, "vault.v1.0.0 runs, and no version is known that was there before it: name one", advised(t, first, "", false).Refused)
	pending := upgradetest.Offering(t, []bundle{upgradetest.BundleOf(1)})
	require.Equal(t, "no version is known that was there before: name one", advised(t, pending, "", false).Refused)
}

// TestNothingToGoBackFrom: the version runs already, and what waits for approval is no reason to write.
func TestNothingToGoBackFrom(t *testing.T) {
	for _, approval := range []v1alpha1.Approval{v1alpha1.ApprovalManual, v1alpha1.ApprovalAutomatic} {
		w := upgradetest.New(t, nil)
		require.NoError(
			t,
			fake.Edit(w.Cluster, vault.Namespace, vault.Name, func(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = approval }),
		)
		a := advised(t, w, upgradetest.First, false)
		require.Equal(t, rollback.Advice{
			Subscription: olmcore.RefOf(w.Subscribed()).Unversioned(), From: upgradetest.First, To: upgradetest.First,
			Steps: []rollback.Step{}, Losses: []string{}, Dependants: []string{}, Preview: preview.Between(nil, nil),
		}, a)
	}
	// A plan that is approved would bring the newer version: there is something to hold back.
	w := upgradetest.New(t, nil)
	key := w.Plan(t)
	require.NoError(t, fake.Edit(w.Cluster, key.Namespace, key.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
	require.NotEmpty(t, advised(t, w, upgradetest.First, false).Steps)
}

// TestAWayThatWasStoppedGoesOnByItself: the version to go back to need not be named again, whether it waited or is
// gone.
func TestAWayThatWasStoppedGoesOnByItself(t *testing.T) {
	for _, change := range []func(_, _ *bundle){nil, breakSecond} {
		w := upgradetest.New(t, change)
		w.Cluster.Image(broken).Break("ImagePullBackOff")
		w.Approve(t)
		for range 30 {
			a := advised(t, w, "", false)
			if w.Phase(upgradetest.First) == v1alpha1.CSVPhaseSucceeded && w.Subscribed().Status.InstalledCSV == upgradetest.First {
				require.Equal(t, []string{upgradetest.First, ""}, []string{a.To, a.Refused})
				require.Empty(t, a.Steps)
				break
			}
			require.Equal(t, []string{upgradetest.First, ""}, []string{a.To, a.Refused})
			require.NotEmpty(t, a.Steps)
			if a.Steps[0].Action == nil {
				w.Run(t)
				continue
			}
			require.NoError(t, olmcore.Run(context.Background(), w.Cluster, []olmcore.Action{a.Steps[0].Action}))
		}
		requireBack(t, w)
	}
}

// BenchmarkRegretted is the whole way back of a small operator, gone once in memory.
func BenchmarkRegretted(b *testing.B) {
	w := upgradetest.New(b, nil)
	w.Approve(b)
	in := rollback.Input{
		Now:          w.Cluster.Now(),
		Namespace:    vault.Namespace,
		Subscription: vault.Name,
		Objects:      w.Cluster.Objects(),
		Options:      w.OLM.Options,
	}
	b.ReportAllocs()
	for b.Loop() {
		if a, err := rollback.Advise(context.Background(), in); err != nil || a.Refused != "" {
			b.Fatal(a.Refused, err)
		}
	}
}
