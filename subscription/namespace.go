// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/subscription/internal/planhistory"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// elapsed returns the time from start to now. It is never negative, because clocks may be set back.
func elapsed(start, now time.Time) time.Duration { return max(0, now.Sub(start)) }

// namespace is a validated Input, sorted by name and indexed. It is read-only.
type namespace struct {
	now        time.Time
	name       string
	reinstalls bool // Config.ReinstallMissingCSV
	separates  bool // Input.SeparatePlans
	table      []conditionRow

	subs     []*v1alpha1.Subscription
	subNamed map[string]*v1alpha1.Subscription
	versions versions

	plans       planhistory.Snapshot
	sortedPlans []*v1alpha1.InstallPlan
	histories   map[types.UID]History

	catalogs    *catalogs // nil: nothing is known of them
	failForward bool
	// blocked says why the namespace cannot be resolved. It is empty if it can.
	blocked string
	answer  answer
}

// newNamespace returns the namespace of an Input, or an *olmcore.InputError.
func newNamespace(in *Input, table []conditionRow) (*namespace, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	subs := relation.Sorted(in.Subscriptions.Items)
	n := &namespace{
		now: in.Now, name: in.Namespace, table: table,
		reinstalls: in.Config.ReinstallMissingCSV, separates: in.SeparatePlans,
		subs: subs, subNamed: relation.ByName(subs),
		versions:    versionsOf(relation.ByName(in.ClusterServiceVersions.Items), subs),
		sortedPlans: relation.Sorted(in.InstallPlans.Items),
		plans: planhistory.Snapshot{
			Now: in.Now, Namespace: in.Namespace, Plans: relation.ByName(in.InstallPlans.Items),
			Window: windowOf(in), Grace: cmp.Or(in.Config.MissingGrace, DefaultMissingGrace),
			Live: in.Live, KeepsHistories: in.Histories != nil,
		},
		histories: in.Histories,
		catalogs:  newCatalogs(in.Catalogs),
	}
	groups := in.OperatorGroups.Items
	switch {
	case len(groups) == 1:
		n.failForward = groups[0].Spec.UpgradeStrategy == operatorsv1.UpgradeStrategyUnsafeFailForward
	case len(n.subs) > 0:
		n.blocked = fmt.Sprintf("found %d operatorGroups, expected 1", len(groups))
	}
	n.answer = newAnswer(n, in.Resolution)
	return n, nil
}

// windowOf returns the Observations of an Input.
func windowOf(in *Input) planhistory.Window {
	arrived := make([]planhistory.Observation, len(in.Observations))
	for i, o := range in.Observations {
		arrived[i] = planhistory.Observation(o)
	}
	return planhistory.NewWindow(in.Namespace, arrived)
}

// newestPlan returns the accepted InstallPlan with the highest generation that is not being deleted, or nil.
func (n *namespace) newestPlan(accept func(*v1alpha1.InstallPlan) bool) *v1alpha1.InstallPlan {
	var newest *v1alpha1.InstallPlan
	for _, p := range n.sortedPlans {
		if p.DeletionTimestamp != nil || n.plans.Window.HasDeletion(p.UID, "") || !accept(p) {
			continue
		}
		if newest == nil || p.Spec.Generation > newest.Spec.Generation {
			newest = p
		}
	}
	return newest
}
