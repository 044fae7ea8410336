// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/subscription/internal/relation"
)

// namespace is an Input that was checked, sorted by name and indexed. Nothing observed is written to.
type namespace struct {
	now          time.Time
	name         string
	grace        time.Duration // how long a plan may be invisible, and how far a cache may be stale
	live         bool
	reinstalls   bool
	isSeparate   bool // Input.SeparatePlans
	table        []conditionRow
	subs         []*v1alpha1.Subscription
	subNamed     map[string]*v1alpha1.Subscription
	csvs         map[string]*v1alpha1.ClusterServiceVersion
	followers    map[string]int                             // how many Subscriptions follow a version
	unfollowed   map[string]*v1alpha1.ClusterServiceVersion // those that no Subscription follows
	replacements map[string]*v1alpha1.ClusterServiceVersion // of them, by what they replace
	replaced     map[string]bool                            // what any CSV replaces
	plans        []*v1alpha1.InstallPlan
	planNamed    map[string]*v1alpha1.InstallPlan
	window       window
	histories    map[types.UID]History
	catalogs     *catalogs // nil: nothing is known of them
	failForward  bool
	// blocked is the message of a namespace that cannot be resolved, empty where it can.
	blocked string
	answer  answer
}

func newNamespace(in *Input, table []conditionRow) (*namespace, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	n := &namespace{
		now: in.Now, name: in.Namespace, grace: cmp.Or(in.Config.MissingGrace, DefaultMissingGrace), live: in.Live,
		reinstalls: in.Config.ReinstallMissingCSV, isSeparate: in.SeparatePlans,
		table: table, histories: in.Histories, catalogs: newCatalogs(in.Catalogs),
		subs: relation.Sorted(in.Subscriptions.Items), subNamed: relation.ByName(in.Subscriptions.Items),
		plans: relation.Sorted(in.InstallPlans.Items), planNamed: relation.ByName(in.InstallPlans.Items),
		csvs: relation.ByName(in.ClusterServiceVersions.Items), window: newWindow(in.Namespace, in.Observations),
		followers: map[string]int{},
	}
	for _, s := range n.subs {
		for _, csv := range followedBy(s) {
			n.followers[csv]++
		}
	}
	n.unfollowed = unfollowed(n.csvs, n.followers)
	n.replacements, n.replaced = replacements(n.unfollowed), map[string]bool{}
	for _, c := range n.csvs {
		n.replaced[c.Spec.Replaces] = n.replaced[c.Spec.Replaces] || !c.IsCopied()
	}
	if groups := in.OperatorGroups.Items; len(groups) == 1 {
		n.failForward = groups[0].Spec.UpgradeStrategy == operatorsv1.UpgradeStrategyUnsafeFailForward
	} else if len(n.subs) > 0 {
		n.blocked = fmt.Sprintf("found %d operatorGroups, expected 1", len(groups))
	}
	n.answer = newAnswer(n, in.Resolution)
	return n, nil
}

// newestPlan returns the plan with the highest generation that stays and meets a condition, nil for none.
func (n *namespace) newestPlan(meets func(*v1alpha1.InstallPlan) bool) *v1alpha1.InstallPlan {
	var newest *v1alpha1.InstallPlan
	for _, p := range n.plans {
		if p.DeletionTimestamp == nil && !n.window.gone(p.UID, "") && meets(p) &&
			(newest == nil || p.Spec.Generation > newest.Spec.Generation) {
			newest = p
		}
	}
	return newest
}
