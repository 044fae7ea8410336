// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/scenario"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/audit"
)

var subscriptionKind = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind)

// embedder contains the state of a caller of Reconcile: answers and histories.
type embedder struct {
	config     subscription.Config
	forgetful  bool // keeps no histories
	answers    map[string]*subscription.Resolved
	histories  map[types.UID]subscription.History
	last       subscription.Outcome
	assessment subscription.Assessment
}

func (e *embedder) reset() {
	e.answers, e.histories = map[string]*subscription.Resolved{}, map[types.UID]subscription.History{}
}

func (e *embedder) controller() controller.Controller {
	return controller.Controller{
		Name: "subscription", Kinds: []schema.GroupVersionKind{subscriptionKind}, KeysOf: controller.NamespaceKey, Reconcile: e.reconcile,
	}
}

func (e *embedder) reconcile(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
	in, err := subscription.Gather(ctx, r, key.Namespace, e.config)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.Resolution = now, e.answers[key.Namespace]
	if !e.forgetful {
		in.Histories = e.histories
	}
	if e.assessment, err = subscription.Assess(in); err != nil {
		return olmcore.Result{}, err
	}
	if e.last, err = subscription.Reconcile(in); err != nil {
		return olmcore.Result{}, err
	}
	for uid, h := range e.last.Histories {
		e.histories[uid] = h
	}
	return e.last.Result, nil
}

// answer passes a resolution of the namespace ops: "answer PLAN SUBSCRIPTION=CSV..." resolves the Subscriptions to the
// CSVs with that plan, "answer none" changes nothing, and "answer failed TEXT..." has no solution.
func (e *embedder) answer(w *scenario.World, args []string, _ []byte) (string, error) {
	subs, err := olmcore.List[*v1alpha1.Subscription](context.Background(), w.Cluster, ns, nil)
	if err != nil {
		return "", err
	}
	r := &subscription.Resolved{At: w.Cluster.Now(), Resolution: resolutionOf(subscription.Input{Subscriptions: olmcore.Found(subs...)})}
	e.answers[ns] = r
	switch args[0] {
	case "none":
	case "failed":
		r.Resolution.Failure = &olmcore.ResolutionFailure{Unsatisfiable: true, Message: strings.Join(args[1:], " ")}
	default:
		p := fake.Find[*v1alpha1.InstallPlan](w.Cluster, ns, args[0])
		if p == nil {
			return "", fmt.Errorf("no plan %s", args[0])
		}
		r.Plan = olmcore.RefOf(p)
		for _, arg := range args[1:] {
			name, csv, _ := strings.Cut(arg, "=")
			r.Resolution.Operators = append(r.Resolution.Operators, olmcore.Operator{Name: csv})
			for i := range r.Resolution.Decisions {
				if d := &r.Resolution.Decisions[i]; d.Name == name {
					d.Changed, d.CurrentCSV = d.CurrentCSV != csv, csv
				}
			}
		}
	}
	return "", poke(w)
}

// poke reconciles the namespace again. A caller does that when an answer arrives, but a Driver only when the cluster
// changes.
func poke(w *scenario.World) error {
	return fake.Edit(w.Cluster, ns, "poke", func(c *corev1.ConfigMap) { c.Data = map[string]string{"at": w.Cluster.ResourceVersion()} })
}

// plan creates an InstallPlan without status that Subscriptions own: "plan NAME CSV Manual|Automatic OWNER...".
func (e *embedder) plan(w *scenario.World, args []string, _ []byte) (string, error) {
	p := &v1alpha1.InstallPlan{}
	p.Namespace, p.Name = ns, args[0]
	p.Spec.ClusterServiceVersionNames, p.Spec.Approval, p.Spec.Generation = []string{args[1]}, v1alpha1.Approval(args[2]), 1
	p.Spec.Approved = p.Spec.Approval == v1alpha1.ApprovalAutomatic
	for _, name := range args[3:] {
		s := fake.Find[*v1alpha1.Subscription](w.Cluster, ns, name)
		if s == nil {
			return "", fmt.Errorf("no Subscription %s", name)
		}
		p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(s))
	}
	return "", w.Cluster.Create(p)
}

// phase writes the status of a plan like the controller of plans: "phase NAME PHASE [start] [done|failed]".
func (e *embedder) phase(w *scenario.World, args []string, _ []byte) (string, error) {
	now := olmcore.Timestamp(w.Cluster.Now())
	return "", fake.Edit(w.Cluster, ns, args[0], func(p *v1alpha1.InstallPlan) {
		p.Status.Phase = v1alpha1.InstallPlanPhase(args[1])
		if args[1] == "none" {
			p.Status.Phase = ""
		}
		p.Status.Plan = []*v1alpha1.Step{{Resolving: p.Spec.ClusterServiceVersionNames[0]}}
		for _, what := range args[2:] {
			c := v1alpha1.ConditionMet(v1alpha1.InstallPlanInstalled, &now)
			switch what {
			case "start":
				p.Status.StartTime = &now
				continue
			case "failed":
				c = v1alpha1.ConditionFailed(v1alpha1.InstallPlanInstalled, v1alpha1.InstallPlanReasonComponentFailed, "a step broke", &now)
			}
			p.Status.Conditions = []v1alpha1.InstallPlanCondition{c}
		}
	})
}

// csv creates a ClusterServiceVersion that succeeded: "csv NAME".
func (e *embedder) csv(w *scenario.World, args []string, _ []byte) (string, error) {
	c := &v1alpha1.ClusterServiceVersion{}
	c.Namespace, c.Name = ns, args[0]
	if err := w.Cluster.Create(c); err != nil {
		return "", err
	}
	return "", fake.Edit(w.Cluster, ns, args[0], func(c *v1alpha1.ClusterServiceVersion) { c.Status.Phase = v1alpha1.CSVPhaseSucceeded })
}

// gate prints the gate and the request of the last reconcile.
func (e *embedder) gate(*scenario.World, []string, []byte) (string, error) {
	if e.last.Resolve == nil {
		return string(e.assessment.Gate), nil
	}
	text := string(e.assessment.Gate) + " (" + e.last.Resolve.Reason + "):"
	for _, f := range e.last.Resolve.Subscriptions {
		text += " " + f.Name
	}
	return text, nil
}

// audit prints the findings whose codes have a prefix: "audit Owner".
func (e *embedder) audit(w *scenario.World, args []string, _ []byte) (string, error) {
	in, err := subscription.Gather(context.Background(), w.Cluster, ns, e.config)
	if err != nil {
		return "", err
	}
	in.Now = w.Cluster.Now()
	findings, err := audit.Find(in)
	var lines []string
	for _, f := range findings {
		if strings.HasPrefix(f.Reason, args[0]) {
			lines = append(lines, f.Target.Kind+" "+f.Target.Name+" "+f.Reason+": "+f.Message)
		}
	}
	return strings.Join(lines, "\n"), err
}

// forget is a restart that loses all memory.
func (e *embedder) forget(w *scenario.World, _ []string, _ []byte) (string, error) {
	e.reset()
	return "", poke(w)
}

func TestScenarios(t *testing.T) {
	e := &embedder{}
	require.NoError(t, scenario.RunAll("testdata/*.txt", scenario.Config{
		Controllers: []controller.Controller{e.controller()},
		Setup: func(w *scenario.World) error {
			e.reset()
			return w.Cluster.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "poke"}})
		},
		Commands: map[string]scenario.Command{
			"answer": e.answer, "plan": e.plan, "phase": e.phase, "csv": e.csv, "gate": e.gate, "audit": e.audit, "forget": e.forget,
		},
	}))
}
