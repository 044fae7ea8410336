// SPDX-License-Identifier: Apache-2.0

// Package audit checks that the Subscriptions, InstallPlans and ClusterServiceVersions of a namespace fit together, and
// offers what repairs them. [Find] writes nothing.
package audit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/component"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Finding is one broken or missing relation between Subscriptions, InstallPlans and ClusterServiceVersions.
type Finding struct {
	// Diagnostic says what is wrong: Reason is one of the constants of this package or of package subscription, Target
	// the object. It is an Info while it is younger than subscription.AuditGrace or harmless.
	olmcore.Diagnostic
	// Repair are the actions that end it, nil when there are none to offer: owner references and labels of InstallPlans
	// are what sweep.Reconcile repairs by itself. Actions of several findings may be about one object; run one of them
	// and audit again.
	Repair []olmcore.Action
	// Safe: the repair may run without asking a person.
	Safe bool
}

// Find reports every relation of a namespace that is broken, missing or odd, sorted by object and reason, with the
// actions that repair it. It reads what subscription.Reconcile reads, but no memory. A namespace in order has no
// findings. The error is an *olmcore.InputError.
func Find(in subscription.Input) ([]Finding, error) {
	in.Histories = nil
	assessment, err := subscription.Assess(in)
	if err != nil {
		return nil, err
	}
	a := newAudit(in)
	for i := range assessment.Verdicts {
		a.subscription(&assessment.Verdicts[i])
	}
	a.pairs()
	a.labels(in.Components, in.PreviousPackages)
	for _, p := range a.plans {
		a.plan(p)
	}
	a.planPairs()
	slices.SortStableFunc(a.findings, func(x, y Finding) int {
		return cmp.Or(x.Target.Compare(y.Target), strings.Compare(x.Reason, y.Reason), strings.Compare(x.Message, y.Message))
	})
	return a.findings, nil
}

// audit is what was observed of a namespace, and what was found so far.
type audit struct {
	now        time.Time
	namespace  string
	reinstalls bool
	subs       []*v1alpha1.Subscription // by name, as the plans
	plans      []*v1alpha1.InstallPlan  // but those that are being deleted
	csvs       map[string]*v1alpha1.ClusterServiceVersion
	byUID      map[types.UID]*v1alpha1.Subscription
	byName     map[string]*v1alpha1.Subscription
	planNamed  map[string]*v1alpha1.InstallPlan
	keys       map[string]string // component label keys by the name of the Subscription
	manual     []string          // the names of those that ask for approvals
	findings   []Finding
}

func newAudit(in subscription.Input) *audit {
	a := &audit{
		now: in.Now, namespace: in.Namespace, reinstalls: in.Config.ReinstallMissingCSV,
		subs: relation.Sorted(in.Subscriptions.Items), byName: relation.ByName(in.Subscriptions.Items),
		plans:     slices.DeleteFunc(relation.Sorted(in.InstallPlans.Items), func(p *v1alpha1.InstallPlan) bool { return p.DeletionTimestamp != nil }),
		planNamed: relation.ByName(in.InstallPlans.Items),
		csvs:      relation.ByName(in.ClusterServiceVersions.Items), byUID: map[types.UID]*v1alpha1.Subscription{}, keys: map[string]string{},
	}
	for _, s := range a.subs {
		a.byUID[s.UID] = s
		if s.Spec != nil && s.Spec.Package != "" {
			a.keys[s.Name], _ = olmcore.ComponentLabelKey(s.Spec.Package, a.namespace) // empty for none
		}
		if asksForApproval(s) {
			a.manual = append(a.manual, s.Name)
		}
	}
	return a
}

// add reports a finding that is as old as since; a zero time is old enough.
func (a *audit) add(o olmcore.Object, severity olmcore.Severity, since time.Time, reason, path, format string, args ...any) *Finding {
	if a.now.Sub(since) < subscription.AuditGrace {
		severity = olmcore.Info
	}
	a.findings = append(a.findings, Finding{Diagnostic: olmcore.Diagnose(severity, reason, olmcore.RefOf(o), path, format, args...)})
	return &a.findings[len(a.findings)-1]
}

func (f *Finding) repair(safe bool, actions ...olmcore.Action) { f.Repair, f.Safe = actions, safe }

// pairs audits what Subscriptions have in common with each other.
func (a *audit) pairs() {
	packages, keys, installed := map[string]*v1alpha1.Subscription{}, map[string]*v1alpha1.Subscription{}, map[string]int{}
	for _, s := range a.subs {
		if s.Spec != nil && s.Spec.Package != "" {
			key, pkg := a.keys[s.Name], s.Spec.Package
			if other := packages[pkg]; other != nil {
				a.add(s, olmcore.Warning, time.Time{}, SamePackage, "spec.name", "Subscription %s follows package %s too", other.Name, pkg)
			} else {
				packages[pkg] = s
			}
			if other := keys[key]; key != "" && other != nil && other.Spec.Package != pkg {
				a.add(s, olmcore.Warning, time.Time{}, LabelKeyCollision, "spec.name", "package %s has the same label key as package %s", pkg, other.Spec.Package)
			}
			keys[key] = s
		}
		if csv := s.Status.InstalledCSV; csv != "" {
			if installed[csv]++; installed[csv] == 2 {
				_, shared := subscription.EffectiveConfig(a.subs, a.namespace, csv)
				a.repeat(shared)
			}
		}
	}
}

// repeat takes over what is said elsewhere.
func (a *audit) repeat(said []olmcore.Diagnostic) {
	for _, d := range said {
		a.findings = append(a.findings, Finding{Diagnostic: d})
	}
}

// labels audits the component labels of all but the plans.
func (a *audit) labels(owned []olmcore.Object, previous map[types.UID][]string) {
	out := component.Labels(component.LabelsInput{
		Now: a.now, Namespace: a.namespace, Subscriptions: a.subs, ClusterServiceVersions: a.csvs, Owned: owned, PreviousPackages: previous,
	})
	a.repeat(out.Diagnostics)
	for _, action := range out.Actions {
		update := action.(olmcore.Update)
		reason, message := LabelMissing, "a component label is missing"
		if len(update.After.GetLabels()) < len(update.Before.GetLabels()) {
			reason, message = LabelStale, "the component label is that of an earlier package"
		}
		a.add(update.Before, olmcore.Warning, time.Time{}, reason, "metadata.labels", "%s", message).repair(true, action)
	}
}
