// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

// unread compares what is decided about a world with what is decided without one kind.
type unread struct {
	*world
	// held are the kinds without which something was left undecided.
	held    map[string]bool
	seen    string // the resourceVersion that was looked at last
	options controllers.Options
}

// fromImages is resolve, where beta comes as an image that is never unpacked.
func (u *unread) fromImages(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	answer, err := u.resolve(ctx, r, request)
	for i := range answer.Operators {
		if answer.Operators[i].Package == "beta" {
			answer.Operators[i].Bundle = olmcore.Bundle{Image: "registry.example.com/beta-bundle:1"}
		}
	}
	return answer, err
}

// TestNothingIsConcludedFromAKindThatWasNotRead goes through the life of an operator and
// looks, of each kind in the table, what its absence from a Snapshot changes: whatever is
// still decided is what the whole says, and what is not names the kind.
func TestNothingIsConcludedFromAKindThatWasNotRead(t *testing.T) {
	u := unread{world: newWorld(t), held: map[string]bool{}}
	u.options = controllers.Options{
		KubernetesVersion: "v1.36.2", Resolve: u.fromImages, Sweeps: true, Operators: true, Catalog: catalog.Config{Replicas: 2},
		InstallPlan: installplan.Config{OPMImage: "opm:1", UtilImage: "util:1"},
	}
	u.olm.Options = u.options
	u.driver.Controllers = u.olm.Controllers()
	u.live(t)
	require.NoError(t, u.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	require.NoError(t, fake.Edit(u.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) {
		s.Spec.Config = &v1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "MODE", Value: "fast"}}}
	}))
	u.live(t)
	u.heads["alpha"]++
	u.olm.CatalogsChanged()
	require.NoError(t, fake.Edit(u.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) { s.Labels["poke"] = "" }))
	u.live(t)
	u.requireInstalled(t, "alpha")
	require.NoError(t, u.subscribe("beta", v1alpha1.ApprovalAutomatic))
	u.live(t)

	mesh := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "mesh.v1"}}
	mesh.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	mesh.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	mesh.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{}
	disabled := &operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: operatorsv1.OLMConfigSpec{Features: &operatorsv1.Features{DisableCopiedCSVs: new(true)}}}
	require.NoError(t, u.cluster.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "global"}}, mesh, disabled))
	u.live(t)
	events, err := u.cluster.List(t.Context(), corev1.SchemeGroupVersion.WithKind("Event"), "operators", nil)
	require.NoError(t, err)
	require.Len(t, events, 1, "copies are disabled")
	require.NoError(t, fake.Edit(u.cluster, "", "cluster", func(c *operatorsv1.OLMConfig) { c.Spec.Features.DisableCopiedCSVs = new(false) }))
	u.live(t)

	operand := &unstructured.Unstructured{}
	operand.SetAPIVersion("example.com/v1")
	operand.SetKind("alpha")
	operand.SetNamespace(namespace)
	operand.SetName("data")
	operand.SetFinalizers([]string{"example.com/hold"})
	require.NoError(t, u.cluster.Create(operand))
	require.NoError(t, fake.Edit(u.cluster, namespace, csvName("alpha", 2), func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Cleanup.Enabled = true }))
	u.live(t)
	require.NoError(t, u.cluster.Delete(olmcore.Ref{APIVersion: v1alpha1.SubscriptionCRDAPIVersion, Kind: "Subscription", Namespace: namespace, Name: "alpha"}))
	require.NoError(t, u.cluster.Delete(olmcore.Ref{APIVersion: v1alpha1.SubscriptionCRDAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind, Namespace: namespace, Name: csvName("alpha", 2)}))
	u.live(t)
	held, err := u.cluster.Get(t.Context(), operand.GroupVersionKind(), namespace, "data")
	require.NoError(t, err)
	require.NotNil(t, held.GetDeletionTimestamp(), "the clean-up deletes operands")
	released := held.DeepCopyObject().(olmcore.Object)
	released.SetFinalizers(nil)
	require.NoError(t, u.cluster.Update(released))
	u.live(t)
	require.NoError(t, u.cluster.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: namespace}))
	u.live(t)

	var table []string
	for _, k := range olmcore.Kinds() {
		if len(k.ReadBy) > 0 && !u.held[k.GroupVersionKind.Kind] {
			table = append(table, k.GroupVersionKind.Kind)
		}
	}
	require.Empty(t, table, "kinds without which everything is decided")
}

// live goes on round by round, and looks before each.
func (u *unread) live(t *testing.T) {
	for range 6 {
		u.look(t)
		require.NoError(t, u.cluster.Settle())
		_, err := u.driver.Round(t.Context())
		require.NoError(t, err)
		u.cluster.Advance(time.Second)
	}
	u.run(t, 10*time.Minute)
	u.look(t)
}

func (u *unread) look(t *testing.T) {
	fresh := func() []controller.Controller {
		o := olm.OLM{Options: u.options, Disconnected: true}
		return o.Controllers()
	}
	now := u.cluster.Now()
	if u.cluster.ResourceVersion() == u.seen {
		return
	}
	u.seen = u.cluster.ResourceVersion()
	for _, kind := range olmcore.Kinds() {
		if len(kind.ReadBy) == 0 {
			continue
		}
		partial := u.without(t, kind)
		whole := fresh()
		for i, c := range fresh() {
			keys, err := c.Keys(u.ctx, u.cluster)
			require.NoError(t, err)
			for _, key := range keys {
				all, err := whole[i].Reconcile(u.ctx, u.cluster, key, now, nil)
				require.NoError(t, err)
				got, err := c.Reconcile(u.ctx, partial, key, now, nil)
				where := c.Name + " without " + kind.GroupVersionKind.Kind
				u.compare(t, where, kind, all, got, err)
				if state, err := u.assess(t, partial, c.Name, key, now); err == nil {
					want, err := u.assess(t, u.cluster, c.Name, key, now)
					require.NoError(t, err)
					require.Equal(t, want, state, where)
				}
			}
		}
	}
}

// without is the world as a Snapshot that was filled with all kinds but one.
func (u *unread) without(t *testing.T, kind olmcore.Kind) *olmcore.Snapshot {
	var objects []olmcore.Object
	var scopes []olmcore.Scope
	for _, o := range u.cluster.Objects() {
		if olmcore.GVKOf(o).GroupKind() != kind.GroupKind() {
			objects = append(objects, o)
		}
	}
	for _, served := range u.cluster.Discovery().Kinds() {
		if gk := served.GroupVersionKind.GroupKind(); gk != kind.GroupKind() {
			scopes = append(scopes, olmcore.Scope{Kind: gk})
		}
	}
	s, err := olmcore.NewSnapshot(objects, scopes...)
	require.NoError(t, err)
	return s
}

// assess returns what a package makes of an object, without the diagnostics; the error is that of Gather.
func (u *unread) assess(t *testing.T, r olmcore.Reader, controller string, key types.NamespacedName, now time.Time) (any, error) {
	switch controller {
	case controllers.Catalog:
		in, err := catalog.Gather(u.ctx, r, key, u.options.Catalog)
		in.Now = now
		a := catalog.Assess(in)
		return []any{a.State, a.Ready, a.Healthy, a.UpstreamHealthy}, err
	case controllers.CSV:
		in, err := csv.Gather(u.ctx, r, key, u.options.CSV)
		if err != nil {
			return nil, err
		}
		in.Now, in.KubernetesVersion = now, u.options.KubernetesVersion
		a, err := csv.Assess(in)
		require.NoError(t, err)
		if !slices.ContainsFunc(a.Diagnostics, func(d olmcore.Diagnostic) bool { return d.Reason == csv.ReasonNotObserved }) {
			return a.Phase, nil
		}
		require.Equal(t, in.ClusterServiceVersion.Status.Phase, a.Phase)
		return nil, olmcore.ErrNotRead
	case controllers.InstallPlan:
		in, err := installplan.Gather(u.ctx, r, key, u.options.InstallPlan)
		if err != nil {
			return nil, err
		}
		in.Now = now
		a, err := installplan.Assess(in)
		require.NoError(t, err)
		return a, nil
	case controllers.Subscription:
		in, err := subscription.Gather(u.ctx, r, key.Namespace, u.options.Subscription)
		if err != nil {
			return nil, err
		}
		in.Now = now
		a, err := subscription.Assess(in)
		require.NoError(t, err)
		return a.Decisions, nil
	}
	return nil, olmcore.ErrNotRead // has no Assess
}

// compare requires that what is decided without a kind is part of the whole, and that
// the kind is named where something is missing.
func (u *unread) compare(t *testing.T, where string, kind olmcore.Kind, whole, got olmcore.Result, err error) {
	name := kind.GroupVersionKind.Kind
	if err != nil {
		var notRead *olmcore.NotReadError
		require.True(t, errors.As(err, &notRead), "%s: %v", where, err)
		require.Equal(t, name, notRead.Kind.Kind, where)
		require.NotEmpty(t, notRead.Unknown, where)
		u.held[name] = true
		return
	}
	actions, transitions, said := parts(t, whole)
	gotActions, gotTransitions, gotSaid := parts(t, got)
	require.Subset(t, actions, gotActions, where)
	require.Subset(t, transitions, gotTransitions, where)
	named := false
	for i, d := range got.Diagnostics {
		if slices.Contains(said, gotSaid[i]) {
			continue
		}
		require.Contains(t, []string{catalog.ReasonNotRead, csv.ReasonNotObserved}, d.Reason, "%s: %s", where, d.Message)
		// Without these it is not known which kinds are served, and those are named.
		serving := name == "CustomResourceDefinition" || name == "APIService"
		require.True(t, serving || strings.Contains(d.Message, name), "%s: %s", where, d.Message)
		named = true
	}
	u.held[name] = u.held[name] || named
	if len(gotActions) < len(actions) || len(gotTransitions) < len(transitions) || len(gotSaid) < len(said) {
		require.True(t, named, "%s: %v instead of %v", where, gotActions, actions)
	}
}

// parts are what a Result holds, as texts.
func parts(t *testing.T, r olmcore.Result) (actions, transitions, said []string) {
	text := func(v any) string {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		return string(data)
	}
	for _, a := range r.Actions {
		record, err := olmcore.RecordOf(a)
		require.NoError(t, err)
		if strings.Contains(string(record.Patch), catalog.ReasonNodesUnknown) {
			continue // a condition says that it is not known
		}
		if record.Verb == olmcore.VerbUpdateStatus {
			record = olmcore.Record{Verb: record.Verb, Target: record.Target} // a part of it may be known; what it means are the transitions
		}
		actions = append(actions, text(record))
	}
	for _, tr := range r.Transitions {
		transitions = append(transitions, text(tr))
	}
	for _, d := range r.Diagnostics {
		said = append(said, text(d))
	}
	return actions, transitions, said
}
