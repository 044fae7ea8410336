// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
	"github.com/olmcore/olm/subscription/internal/stage"
)

// namespace is what was observed of a namespace: an Input that was checked, sorted by
// name and indexed. Nothing observed is written to.
type namespace struct {
	now          time.Time
	name         string
	reinstalls   bool
	table        []conditionRow
	subs         []*v1alpha1.Subscription
	byName       map[string]*v1alpha1.Subscription
	csvs         map[string]*v1alpha1.ClusterServiceVersion
	replacements map[string]*v1alpha1.ClusterServiceVersion // by what they replace
	planList     []*v1alpha1.InstallPlan
	plans        stage.InstallPlans
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
		now: in.Now, name: in.Namespace, reinstalls: in.Config.ReinstallMissingCSV, table: table,
		subs: relation.Sorted(in.Subscriptions.Items), byName: relation.ByName(in.Subscriptions.Items),
		csvs: relation.ByName(in.ClusterServiceVersions.Items), planList: relation.Sorted(in.InstallPlans.Items),
		histories: in.Histories, catalogs: newCatalogs(in.Catalogs),
	}
	n.plans = stage.InstallPlans{
		Now: in.Now, Namespace: in.Namespace, Grace: cmp.Or(in.Config.MissingGrace, DefaultMissingGrace), Live: in.Live,
		ByName: relation.ByName(in.InstallPlans.Items), Window: stage.NewWindow(in.Namespace, in.Observations),
	}
	n.replacements = replacements(relation.Sorted(in.ClusterServiceVersions.Items), n.subs)
	if groups := in.OperatorGroups.Items; len(groups) == 1 {
		n.failForward = groups[0].Spec.UpgradeStrategy == operatorsv1.UpgradeStrategyUnsafeFailForward
	} else if len(n.subs) > 0 {
		n.blocked = fmt.Sprintf("found %d operatorGroups, expected 1", len(groups))
	}
	n.answer = newAnswer(n, in.Resolution)
	return n, nil
}

// replacements returns the CSVs that no Subscription follows, by what they replace: of
// several the first by name.
func replacements(csvs []*v1alpha1.ClusterServiceVersion, subs []*v1alpha1.Subscription) map[string]*v1alpha1.ClusterServiceVersion {
	followed := map[string]bool{}
	for _, s := range subs {
		followed[s.Status.CurrentCSV], followed[s.Status.InstalledCSV] = true, true
	}
	found := map[string]*v1alpha1.ClusterServiceVersion{}
	for _, c := range csvs {
		if replaced := c.Spec.Replaces; replaced != "" && found[replaced] == nil && !followed[c.Name] && c.DeletionTimestamp == nil && !c.IsCopied() {
			found[replaced] = c
		}
	}
	return found
}

// newestPlan returns the plan with the highest generation that can still bring something,
// or did, and that meets a condition; nil for none.
func (n *namespace) newestPlan(meets func(*v1alpha1.InstallPlan) bool) *v1alpha1.InstallPlan {
	var newest *v1alpha1.InstallPlan
	for _, p := range n.planList {
		if s := stage.Of(p); p.DeletionTimestamp != nil || s == StageFailed || s == StageUnknown || n.plans.Window.Gone(p.UID, "") || !meets(p) {
			continue
		}
		if newest == nil || p.Spec.Generation > newest.Spec.Generation {
			newest = p
		}
	}
	return newest
}

// said returns a Diagnostic about the namespace.
func (n *namespace) said(severity olmcore.Severity, reason, format string, args ...any) olmcore.Diagnostic {
	return olmcore.Diagnose(severity, reason, olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: n.name}, "", format, args...)
}
