// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
)

func sweepInput(objects ...olmcore.Object) sweep.Input {
	in := sweep.Input{
		Now: noon, Namespace: ns, Namespaces: olmcore.Found(&corev1.Namespace{ObjectMeta: clusterMeta(ns)}),
		Subscriptions: olmcore.Found[*v1alpha1.Subscription](), InstallPlans: olmcore.Found[*v1alpha1.InstallPlan](),
		ConfigMaps: olmcore.Found[*corev1.ConfigMap](), OtherPlans: olmcore.Found[*v1alpha1.InstallPlan](),
	}
	for _, o := range objects {
		switch x := o.(type) {
		case *v1alpha1.Subscription:
			in.Subscriptions.Items = append(in.Subscriptions.Items, x)
		case *v1alpha1.InstallPlan:
			if x.Namespace == ns {
				in.InstallPlans.Items = append(in.InstallPlans.Items, x)
			} else {
				in.OtherPlans.Items = append(in.OtherPlans.Items, x)
			}
		case *corev1.ConfigMap:
			in.ConfigMaps.Items = append(in.ConfigMaps.Items, x)
		}
	}
	return in
}

func swept(t require.TestingT, in sweep.Input) olmcore.Result {
	result, err := sweepResult(in)
	require.NoError(t, err)
	return result
}

func sweepResult(in sweep.Input) (olmcore.Result, error) {
	out, err := sweep.Reconcile(in)
	return out.Result, err
}

// numbered is a plan of a generation, as old as that says.
func numbered(generation int, phase v1alpha1.InstallPlanPhase, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
	p := plan(phase, []*v1alpha1.Step{csvStep("a.v1")}, change...)
	p.Spec.Generation = generation
	name := fmt.Sprintf("install-%d", generation)
	p.Name, p.UID = name, types.UID("uid-"+name)
	p.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(generation-100) * time.Hour))
	return p
}

func owned(p *v1alpha1.InstallPlan, subs ...*v1alpha1.Subscription) *v1alpha1.InstallPlan {
	ownedBy(subs...)(p)
	return p
}

const bundleImage = "quay.io/operatorhubio/etcd:v0.9.4"

// bundleName is the name of all objects that unpack bundleImage.
const bundleName = "fe3359f072ef3976d6cf0d56c20a540531916356d88290cd72c0b5916672ca0"

func unpackedBundle(age time.Duration) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: meta(bundleName)}
	cm.CreationTimestamp = *ago(age)
	cm.Labels = map[string]string{"olm.managed": "true"}
	cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: "cool", UID: "uid-cool"}}
	return cm
}

func reference() string {
	return `{"kind":"ConfigMap","name":"` + bundleName + `","namespace":"` + ns + `","catalogSourceName":"cool","catalogSourceNamespace":"` + ns + `","replaces":"","properties":""}`
}

func withoutSteps(p *v1alpha1.InstallPlan) { p.Status = v1alpha1.InstallPlanStatus{} }

func gone(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = ago(time.Minute) }

func inNamespace(name string) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) { p.Namespace = name }
}

func generated(by string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: by}
	}
}

func writtenAgo(d time.Duration) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.Status.LastUpdated = *ago(d) }
}

func current(name string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = name }
}

// history is a namespace with n plans that are done, the newest of which sub
// refers to.
func history(n int, sub *v1alpha1.Subscription) []olmcore.Object {
	out := []olmcore.Object{sub}
	for i := 1; i <= n; i++ {
		out = append(out, owned(numbered(i, complete), sub))
	}
	refersTo(fmt.Sprintf("install-%d", n))(sub)
	return out
}

func TestOldPlans(t *testing.T) {
	sub := subscription("a")
	for name, c := range map[string]struct {
		objects []olmcore.Object
		want    []string
		reasons []string
		requeue time.Duration
	}{
		"nothing in the namespace":                         {},
		"as many as are kept":                              {objects: history(5, subscription("a"))},
		"the oldest goes when there are more":              {objects: history(6, subscription("a")), want: []string{"delete InstallPlan ops/install-1 (PlanHistory)"}},
		"a failed one goes too":                            {objects: append(history(6, subscription("a"))[2:], numberedFailed(sub), history(6, subscription("a"))[0]), want: []string{"delete InstallPlan ops/install-1 (PlanHistory)"}},
		"one that a Subscription names stays":              {objects: append(history(6, subscription("a")), subscription("b", refersTo("install-1"))), reasons: []string{"ComponentLabelMissing", "OwnerReferenceMissing"}, want: []string{"update InstallPlan ops/install-1 (RelationRepaired)"}},
		"one that runs stays":                              {objects: swapped(history(6, subscription("a")), owned(numbered(1, installing), sub))},
		"one that waits for approval stays":                {objects: swapped(history(6, subscription("a")), owned(numbered(1, requiresApproval), sub))},
		"one that is going already is not deleted again":   {objects: swapped(history(6, subscription("a")), owned(numbered(1, complete, gone), sub))},
		"one that never got steps goes, whatever its rank": {objects: swapped(history(2, subscription("a")), owned(numbered(1, none, withoutSteps), sub)), want: []string{"delete InstallPlan ops/install-1 (PlanWithoutStatus)"}},
		"at most five in one sweep": {objects: history(12, subscription("a")), requeue: time.Second, want: []string{
			"delete InstallPlan ops/install-1 (PlanHistory)", "delete InstallPlan ops/install-2 (PlanHistory)", "delete InstallPlan ops/install-3 (PlanHistory)",
			"delete InstallPlan ops/install-4 (PlanHistory)", "delete InstallPlan ops/install-5 (PlanHistory)",
		}},
		"more active ones than are kept": {objects: active(sub), reasons: []string{"TooManyActivePlans"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := swept(t, sweepInput(c.objects...))
			same(t, c.want, describe(got))
			same(t, c.reasons, reasons(got))
			same(t, c.requeue, got.RequeueAfter)
		})
	}
}

func numberedFailed(sub *v1alpha1.Subscription) *v1alpha1.InstallPlan {
	return owned(numbered(1, failed), sub)
}

// swapped replaces the oldest plan of a history.
func swapped(objects []olmcore.Object, p *v1alpha1.InstallPlan) []olmcore.Object {
	objects[1] = p
	return objects
}

func active(sub *v1alpha1.Subscription) []olmcore.Object {
	out := []olmcore.Object{subscription("a")}
	for i := range 6 {
		out = append(out, owned(numbered(i+1, requiresApproval), sub))
	}
	return out
}

func TestAPlanThatWasJustMadeGetsTimeForItsSteps(t *testing.T) {
	sub := subscription("a")
	p := owned(numbered(1, none, withoutSteps), sub)
	p.CreationTimestamp = *ago(time.Minute)
	got := swept(t, sweepInput(sub, p))
	require.True(t, got.Empty())
	require.Equal(t, 4*time.Minute, got.RequeueAfter)
}

// findings has, for each reason of the audit, a world that has it and the world
// as it is once somebody repaired what Sweep does not repair itself.
var findings = map[string]struct {
	world []olmcore.Object
	steps []sweep.StepObjects
	mend  func(in *sweep.Input)
}{
	"OwnerReferenceMissing": {world: []olmcore.Object{subscription("a", refersTo("install-1")), subscription("b"), owned(numbered(1, complete), subscription("b"))}},
	"OwnerReferenceStale": {world: []olmcore.Object{subscription("a", refersTo("install-1")), owned(numbered(1, complete), subscription("a", func(s *v1alpha1.Subscription) {
		s.UID = "before"
	}))}},
	"PlanWithoutOwner": {world: []olmcore.Object{subscription("a", func(s *v1alpha1.Subscription) { s.CreationTimestamp = *ago(200 * time.Hour) }),
		numbered(1, complete, func(p *v1alpha1.InstallPlan) { p.Labels = map[string]string{"operators.coreos.com/a.ops": ""} })}},
	"ComponentLabelMissing": {world: []olmcore.Object{subscription("a", refersTo("install-1")), owned(numbered(1, complete, func(p *v1alpha1.InstallPlan) {}), subscription("a"))},
		mend: func(*sweep.Input) {}},
	"ComponentLabelUnused": {world: []olmcore.Object{subscription("a"), owned(numbered(1, complete), subscription("a"), subscription("b"))},
		mend: func(in *sweep.Input) { in.Subscriptions.Items = append(in.Subscriptions.Items, subscription("b")) }},
	"PlanReferenceDangling": {world: []olmcore.Object{subscription("a", refersTo("install-9"), writtenAgo(time.Hour))},
		mend: func(in *sweep.Input) { in.Subscriptions = olmcore.Found(subscription("a")) }},
	"GeneratedByDangling": {world: []olmcore.Object{subscription("a", generated("install-9"))}},
	"PlansCollide": {world: []olmcore.Object{subscription("a"), owned(numbered(1, complete), subscription("a")),
		owned(numbered(2, complete, func(p *v1alpha1.InstallPlan) {}), subscription("a"))},
		mend: func(in *sweep.Input) { in.InstallPlans.Items = in.InstallPlans.Items[:1] }},
	"GeneratedOwnerMissing":   {world: []olmcore.Object{subscription("a", generated("install-1")), subscription("b"), owned(numbered(1, complete), subscription("b"))}},
	"OwnerReferenceDuplicate": {world: []olmcore.Object{subscription("a"), owned(numbered(1, complete), subscription("a"), subscription("a"))}},
	"CurrentCSVNotInPlan": {world: []olmcore.Object{subscription("a", refersTo("install-1"), current("a.v2")), owned(numbered(1, complete), subscription("a"))},
		mend: func(in *sweep.Input) {
			in.Subscriptions = olmcore.Found(subscription("a", refersTo("install-1"), current("a.v1")))
		}},
	"PlanWithoutStatus": {world: []olmcore.Object{subscription("a", refersTo("install-1")), owned(numbered(1, none, withoutSteps), subscription("a"))},
		mend: func(in *sweep.Input) { in.Subscriptions = olmcore.Found(subscription("a")) }},
	"UnpackedBundleUnused": {world: []olmcore.Object{unpackedBundle(25 * time.Hour)}},
	"StepObjectAbsent": {world: []olmcore.Object{subscription("a", refersTo("install-1")), owned(numbered(1, complete), subscription("a"))},
		steps: []sweep.StepObjects{{InstallPlan: "uid-install-1"}},
		mend: func(in *sweep.Input) {
			in.Steps = []sweep.StepObjects{{InstallPlan: "uid-install-1", Objects: []olmcore.Object{csv("a.v1")}}}
		}},
}

// TestEachFindingIsReportedAndRepaired: once the repair ran, or somebody did what
// the reason says, the audit finds nothing of the kind.
func TestEachFindingIsReportedAndRepaired(t *testing.T) {
	for reason, c := range findings {
		t.Run(reason, func(t *testing.T) {
			in := sweepInput(c.world...)
			in.Steps = c.steps
			switch reason {
			case "ComponentLabelMissing":
				in.InstallPlans.Items[0].Labels = nil
			case "PlansCollide":
				in.InstallPlans.Items[1].Spec.Generation = 1
			}
			require.NoError(t, invariant.Laws(sweepResult, in))
			first := swept(t, in)
			require.Contains(t, reasons(first), reason)
			for range 3 {
				result := swept(t, in)
				apply(&in, result)
			}
			if c.mend != nil {
				c.mend(&in)
			}
			if c.mend != nil {
				apply(&in, swept(t, in))
			}
			last := swept(t, in)
			require.NotContains(t, reasons(last), reason, "%v", last.Diagnostics)
			require.Empty(t, describe(last))
		})
	}
}

// apply does to the input what a cluster does with the actions.
func apply(in *sweep.Input, result olmcore.Result) {
	for _, a := range result.Actions {
		verb, target, _ := a.Describe()
		for i, p := range in.InstallPlans.Items {
			if p.Name != target.Name || target.Kind != "InstallPlan" {
				continue
			}
			if verb == olmcore.VerbDelete {
				in.InstallPlans.Items = append(in.InstallPlans.Items[:i:i], in.InstallPlans.Items[i+1:]...)
				break
			}
			in.InstallPlans.Items[i] = a.(olmcore.Update).After.(*v1alpha1.InstallPlan)
		}
		for i, s := range in.Subscriptions.Items {
			if s.Name == target.Name && target.Kind == "Subscription" {
				in.Subscriptions.Items[i] = a.(olmcore.Update).After.(*v1alpha1.Subscription)
			}
		}
		if target.Kind == "ConfigMap" {
			in.ConfigMaps = olmcore.Found[*corev1.ConfigMap]()
		}
	}
}

func TestUnpackedBundles(t *testing.T) {
	refers := func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Resource.Manifest = reference() }
	for name, c := range map[string]struct {
		in      sweep.Input
		deleted bool
		requeue time.Duration
	}{
		"one that nobody refers to goes":          {in: sweepInput(unpackedBundle(24 * time.Hour)), deleted: true},
		"a young one stays":                       {in: sweepInput(unpackedBundle(23 * time.Hour)), requeue: time.Hour},
		"one that a plan refers to stays":         {in: sweepInput(subscription("a"), unpackedBundle(25*time.Hour), owned(numbered(1, complete, refers), subscription("a")))},
		"one that a plan elsewhere refers to":     {in: sweepInput(unpackedBundle(25*time.Hour), numbered(1, complete, refers, inNamespace("other")))},
		"one that is being unpacked stays":        {in: lookingUp(sweepInput(unpackedBundle(25 * time.Hour)))},
		"a ConfigMap of somebody else stays":      {in: sweepInput(&corev1.ConfigMap{ObjectMeta: meta(bundleName)})},
		"one whose name is none of ours":          {in: sweepInput(renamed(unpackedBundle(25 * time.Hour)))},
		"everything in a namespace that is going": {in: going(sweepInput(unpackedBundle(25 * time.Hour)))},
	} {
		t.Run(name, func(t *testing.T) {
			got := swept(t, c.in)
			require.Equal(t, c.requeue, got.RequeueAfter)
			if !c.deleted {
				require.Empty(t, got.Actions)
				return
			}
			require.Len(t, got.Actions, 1)
			d := got.Actions[0].(olmcore.Delete)
			require.Equal(t, metav1.DeletePropagationBackground, d.PropagationPolicy)
			require.Equal(t, bundleName, d.Target.Name)
			require.NotEmpty(t, d.Target.UID)
		})
	}
}

func lookingUp(in sweep.Input) sweep.Input {
	in.Lookups = []v1alpha1.BundleLookup{{Path: bundleImage, CatalogSourceRef: &corev1.ObjectReference{Namespace: ns, Name: "cool"}}}
	return in
}

func going(in sweep.Input) sweep.Input {
	in.Namespaces.Items[0].DeletionTimestamp = ago(time.Minute)
	return in
}

func renamed(cm *corev1.ConfigMap) *corev1.ConfigMap {
	cm.Name = strings.Repeat("z", 63)
	return cm
}

func TestBadSweepInput(t *testing.T) {
	for field, change := range map[string]func(*sweep.Input){
		"Now":                    func(in *sweep.Input) { in.Now = time.Time{} },
		"Namespace":              func(in *sweep.Input) { in.Namespace = "" },
		"Namespaces":             func(in *sweep.Input) { in.Namespaces = olmcore.Found(&corev1.Namespace{ObjectMeta: clusterMeta("x")}) },
		"Config.MaxInstallPlans": func(in *sweep.Input) { in.Config.MaxInstallPlans = -1 },
		"InstallPlans":           func(in *sweep.Input) { in.InstallPlans = olmcore.Observed[*v1alpha1.InstallPlan]{} },
		"InstallPlans[0]":        func(in *sweep.Input) { in.InstallPlans = olmcore.Found(numbered(1, complete, inNamespace("x"))) },
		"ConfigMaps[0]":          func(in *sweep.Input) { in.ConfigMaps = olmcore.Found[*corev1.ConfigMap](nil) },
		"OtherPlans": func(in *sweep.Input) {
			in.OtherPlans = olmcore.Observed[*v1alpha1.InstallPlan]{Items: []*v1alpha1.InstallPlan{plan(complete, nil)}}
		},
		"Steps[0].Objects[0]": func(in *sweep.Input) { in.Steps = []sweep.StepObjects{{Objects: []olmcore.Object{nil}}} },
		"Subscriptions[1]":    func(in *sweep.Input) { in.Subscriptions = olmcore.Found(subscription("a"), subscription("a")) },
	} {
		in := sweepInput()
		change(&in)
		_, err := sweep.Reconcile(in)
		var problem *olmcore.InputError
		require.ErrorAs(t, err, &problem, field)
		require.Contains(t, problem.Field, field)
	}
}

// anySweepInput is a namespace with up to twelve plans in any state, that
// Subscriptions may or may not own or refer to.
func anySweepInput(t *rapid.T) sweep.Input {
	var objects []olmcore.Object
	var subs []*v1alpha1.Subscription
	for _, name := range []string{"a", "b"} {
		if !maybe(t, "has "+name) {
			continue
		}
		s := subscription(name)
		if maybe(t, "refers") {
			refersTo(fmt.Sprintf("install-%d", rapid.IntRange(1, 13).Draw(t, "plan")))(s)
			s.Status.LastUpdated = *ago(rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "updated"))
		} else if maybe(t, "generated") {
			generated(fmt.Sprintf("install-%d", rapid.IntRange(1, 13).Draw(t, "by")))(s)
		}
		subs = append(subs, s)
		objects = append(objects, s)
	}
	phases := []v1alpha1.InstallPlanPhase{none, requiresApproval, installing, complete, complete, complete, failed}
	for i := 1; i <= rapid.IntRange(0, 12).Draw(t, "plans"); i++ {
		p := numbered(i, rapid.SampledFrom(phases).Draw(t, "phase"))
		if p.Status.Phase == none {
			withoutSteps(p)
		}
		for _, s := range subs {
			if maybe(t, "owns") {
				owned(p, s)
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "going") == 0 {
			gone(p)
		}
		if rapid.IntRange(0, 4).Draw(t, "young") == 0 {
			p.CreationTimestamp = *ago(time.Minute)
		}
		objects = append(objects, p)
	}
	return sweepInput(objects...)
}

// TestSweepIsSafe: it is a lawful function, deletes at most five plans and none
// that runs, is referred to, or has its place in the history, and comes to an
// end.
func TestSweepIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anySweepInput(t)
		require.NoError(t, invariant.Laws(sweepResult, in))
		for round := 0; ; round++ {
			require.Less(t, round, 6, "it comes to an end")
			result := swept(t, in)
			deleted := 0
			for _, a := range result.Actions {
				verb, target, _ := a.Describe()
				if verb != olmcore.VerbDelete {
					before, after := a.(olmcore.Update).Before, a.(olmcore.Update).After
					for _, ref := range before.GetOwnerReferences() {
						require.True(t, olmcore.OwnedBy(after, ref.UID), "no owner is dropped")
					}
					continue
				}
				deleted++
				newer := 0
				var p *v1alpha1.InstallPlan
				for _, other := range in.InstallPlans.Items {
					if other.Name == target.Name {
						p = other
					}
				}
				for _, other := range in.InstallPlans.Items {
					if other.Spec.Generation > p.Spec.Generation {
						newer++
					}
				}
				for _, s := range in.Subscriptions.Items {
					require.False(t, s.Status.InstallPlanRef != nil && s.Status.InstallPlanRef.Name == p.Name)
				}
				if len(p.Status.Plan) > 0 {
					require.Contains(t, []v1alpha1.InstallPlanPhase{complete, failed}, p.Status.Phase)
					require.GreaterOrEqual(t, newer, 5)
				}
				require.NotEmpty(t, target.UID)
				require.NotEmpty(t, target.ResourceVersion)
			}
			require.LessOrEqual(t, deleted, 5)
			if len(result.Actions) == 0 {
				break
			}
			apply(&in, result)
		}
	})
}
