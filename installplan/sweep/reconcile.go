// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/olmcore"
)

// Reconcile sweeps one namespace; see the package. A namespace in order gives the zero
// Result. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, gcInstallPlans.
// Differs: OLM looks at neither phases nor references, and only at the first ten
// plans of an unordered list; it audits nothing.
func Reconcile(in Input) (Outcome, error) {
	c := in.Checkpoint.Compare(in.Now)
	in.cover(&c)
	if wait, same := c.Holds(); same {
		return Outcome{Result: olmcore.Result{RequeueAfter: wait}, Checkpoint: in.Checkpoint}, nil
	}
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Result: decide(in)}
	c = olmcore.NewCoverage(in.Now, out.Result)
	in.cover(&c)
	out.Checkpoint = c.Checkpoint()
	return out, nil
}

func decide(in Input) olmcore.Result {
	var f findings
	if input.Terminating(in.Namespaces) {
		return f.Result
	}
	if in.Namespaces.Complete {
		n := newNamespace(in)
		gone := deleteOld(in, n, &f)
		for _, p := range n.plans {
			if p.DeletionTimestamp == nil && !gone[p.UID] {
				auditPlan(in, n, p, &f)
			}
		}
		for _, s := range n.subscriptions {
			auditSubscription(in, n, s, &f)
		}
		auditCollisions(n, gone, &f)
		deleteBundles(in, &f)
	}
	for _, e := range in.unread() {
		f.namespace(in.Namespace, olmcore.Info, ReasonNotRead, "%s", e.Error())
	}
	return f.Result
}

// findings is the Result in the making.
type findings struct{ olmcore.Result }

func (f *findings) object(severity olmcore.Severity, reason string, target olmcore.Object, format string, args ...any) {
	f.Diagnostics = append(f.Diagnostics, olmcore.Diagnose(severity, reason, olmcore.RefOf(target), "", format, args...))
}

func (f *findings) namespace(name string, severity olmcore.Severity, reason, format string, args ...any) {
	target := olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
	f.Diagnostics = append(f.Diagnostics, olmcore.Diagnose(severity, reason, target, "", format, args...))
}

func (f *findings) do(a olmcore.Action) { f.Actions = append(f.Actions, a) }

// namespace is the Input in an order that finds things.
type namespace struct {
	// subscriptions and plans are sorted by name.
	subscriptions []*v1alpha1.Subscription
	plans         []*v1alpha1.InstallPlan
	planByName    map[string]*v1alpha1.InstallPlan
	// ties finds the Subscriptions that a plan has to do with, byLabel those of the
	// package of a component label.
	ties    relation.Ties
	byLabel map[string][]*v1alpha1.Subscription
	steps   map[types.UID]StepObjects // by plan
}

func newNamespace(in Input) namespace {
	n := namespace{
		subscriptions: input.ByName(in.Subscriptions.Items), plans: input.ByName(in.InstallPlans.Items),
		planByName: map[string]*v1alpha1.InstallPlan{}, byLabel: map[string][]*v1alpha1.Subscription{}, steps: map[types.UID]StepObjects{},
	}
	n.ties = relation.NewTies(n.subscriptions)
	for _, p := range n.plans {
		n.planByName[p.Name] = p
	}
	for _, s := range n.subscriptions {
		pkg := relation.PackageOf(s)
		if key, err := olmcore.ComponentLabelKey(pkg, in.Namespace); err == nil && pkg != "" {
			n.byLabel[key] = append(n.byLabel[key], s)
		}
	}
	for _, s := range in.Steps {
		n.steps[s.InstallPlan] = s
	}
	return n
}
