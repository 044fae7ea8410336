// SPDX-License-Identifier: Apache-2.0

package plantest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// Phases of plans and statuses of steps.
const (
	None             = v1alpha1.InstallPlanPhaseNone
	RequiresApproval = v1alpha1.InstallPlanPhaseRequiresApproval
	Installing       = v1alpha1.InstallPlanPhaseInstalling
	Complete         = v1alpha1.InstallPlanPhaseComplete
	Failed           = v1alpha1.InstallPlanPhaseFailed

	Unknown    = v1alpha1.StepStatusUnknown
	NotPresent = v1alpha1.StepStatusNotPresent
	Present    = v1alpha1.StepStatusPresent
	Created    = v1alpha1.StepStatusCreated
	WaitingAPI = v1alpha1.StepStatusWaitingForAPI
)

// Step is a step with a manifest, as text or as an object.
func Step(resolving, group, version, kind, name string, manifest any) *v1alpha1.Step {
	text, ok := manifest.(string)
	if !ok {
		data, err := json.Marshal(manifest)
		if err != nil {
			panic(err)
		}
		text = string(data)
	}
	return &v1alpha1.Step{Resolving: resolving, Status: v1alpha1.StepStatusUnknown, Resource: v1alpha1.StepResource{
		Group: group, Version: version, Kind: kind, Name: name, Manifest: text, CatalogSource: "cool", CatalogSourceNamespace: "olm",
	}}
}

// CSVStep makes a ClusterServiceVersion.
func CSVStep(name string) *v1alpha1.Step {
	return Step(name, "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", name,
		`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"`+name+`"},"spec":{"displayName":"Cool","install":{"strategy":"deployment"}}}`)
}

// RoleStep makes a Role.
func RoleStep(resolving, name string) *v1alpha1.Step {
	return Step(resolving, "rbac.authorization.k8s.io", "v1", "Role", name, `{"metadata":{"name":"`+name+`"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`)
}

// CRDStep makes the CustomResourceDefinition of CRDObject.
func CRDStep(resolving string, versions ...string) *v1alpha1.Step {
	return Step(resolving, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", CRDObject(versions...))
}

// WithStatus sets the status of a step.
func WithStatus(status v1alpha1.StepStatus, s *v1alpha1.Step) *v1alpha1.Step {
	s.Status = status
	return s
}

// Plan is the plan install-x.
func Plan(phase v1alpha1.InstallPlanPhase, steps []*v1alpha1.Step, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
	p := &v1alpha1.InstallPlan{ObjectMeta: Meta("install-x")}
	p.Spec = v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true, Generation: 1, ClusterServiceVersionNames: []string{}}
	p.Status = v1alpha1.InstallPlanStatus{Phase: phase, Plan: steps, CatalogSources: []string{"cool"}}
	for _, s := range steps {
		if s != nil && s.Resource.Kind == "ClusterServiceVersion" {
			p.Spec.ClusterServiceVersionNames = append(p.Spec.ClusterServiceVersionNames, s.Resource.Name)
		}
	}
	for _, f := range change {
		f(p)
	}
	if p.DeletionTimestamp != nil && phase != Complete && phase != Failed {
		Held(p)
	}
	return p
}

// Held gives a plan the finalizer.
func Held(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} }

// Started sets how long ago a plan started.
func Started(d time.Duration) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) { p.Status.StartTime = Ago(d) }
}

// OwnedBy makes Subscriptions owners of a plan.
func OwnedBy(subs ...*v1alpha1.Subscription) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) {
		for _, s := range subs {
			p.OwnerReferences = append(p.OwnerReferences, OwnerRef(s))
			key, err := olmcore.ComponentLabelKey(s.Spec.Package, NS)
			if err != nil {
				panic(err)
			}
			p.Labels, _ = olmcore.MergeMaps(p.Labels, map[string]string{key: ""})
		}
	}
}

// Describe prints the actions of a result, one line each.
func Describe(r olmcore.Result) []string {
	lines := []string{}
	for _, a := range r.Actions {
		verb, target, cause := a.Describe()
		line := fmt.Sprintf("%s %s (%s)", verb, target, cause.Reason)
		if as := a.Identity(); as != nil {
			line += " as " + as.Name
		}
		lines = append(lines, line)
	}
	return lines
}

// Statuses are those of the steps.
func Statuses(s v1alpha1.InstallPlanStatus) []v1alpha1.StepStatus {
	var out []v1alpha1.StepStatus
	for _, Step := range s.Plan {
		out = append(out, Step.Status)
	}
	return out
}

// Reasons are those of the Diagnostics, sorted.
func Reasons(r olmcore.Result) []string {
	var out []string
	for _, d := range r.Diagnostics {
		out = append(out, d.Reason)
	}
	slices.Sort(out)
	return out
}

// Same compares two values, empty and nil lists alike.
func Same(t testing.TB, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Numbered is a plan of a generation, as old as that says.
func Numbered(generation int, phase v1alpha1.InstallPlanPhase, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
	p := Plan(phase, []*v1alpha1.Step{CSVStep("a.v1")}, change...)
	p.Spec.Generation = generation
	name := fmt.Sprintf("install-%d", generation)
	p.Name, p.UID = name, types.UID("uid-"+name)
	p.CreationTimestamp = metav1.NewTime(Noon.Add(time.Duration(generation-100) * time.Hour))
	return p
}

// Owned is OwnedBy for a plan that exists.
func Owned(p *v1alpha1.InstallPlan, subs ...*v1alpha1.Subscription) *v1alpha1.InstallPlan {
	OwnedBy(subs...)(p)
	return p
}

// InNamespace moves a plan.
func InNamespace(name string) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) { p.Namespace = name }
}

// WithoutSteps takes the status from a plan.
func WithoutSteps(p *v1alpha1.InstallPlan) { p.Status = v1alpha1.InstallPlanStatus{} }

// Things supports kind Thing.
var Things = installplan.Config{SupportedKinds: []string{"Thing"}}

// Condition is condition Installed at Noon.
func Condition(status corev1.ConditionStatus, reason v1alpha1.InstallPlanConditionReason, message string) v1alpha1.InstallPlanCondition {
	return v1alpha1.InstallPlanCondition{
		Type: v1alpha1.InstallPlanInstalled, Status: status, Reason: reason, Message: message,
		LastUpdateTime: new(metav1.NewTime(Noon)), LastTransitionTime: new(metav1.NewTime(Noon)),
	}
}

// DrawRelations draws Subscriptions and plans of one namespace that have to do with each other in all ways, and eight
// more Subscriptions without plans.
func DrawRelations(t *rapid.T) (objects, others []olmcore.Object) {
	one := func(label string, names ...string) string { return rapid.SampledFrom(names).Draw(t, label) }
	for i := range 4 {
		s := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("s", i), UID: types.UID(fmt.Sprint("u", i))}}
		s.Spec = &v1alpha1.SubscriptionSpec{Package: one("package", "a", "b", "c"), InstallPlanApproval: v1alpha1.Approval(one("approval", "Manual", "Automatic"))}
		s.Status.CurrentCSV = one("current", "", "v1", "v2")
		if from := one("generated by", "", "p0", "p1"); from != "" {
			s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: from}
		}
		if ref := one("ref", "", "p0", "p1", "p9"); ref != "" {
			s.Status.InstallPlanRef = &corev1.ObjectReference{Name: ref, UID: types.UID(one("ref UID", "", "p0-uid", "p1-uid"))}
			s.Status.InstallPlanGeneration = rapid.IntRange(0, 3).Draw(t, "ref generation")
		}
		objects = append(objects, s)
	}
	for _, name := range []string{"p0", "p1"} {
		objects = append(objects, drawPlan(t, name))
	}
	for i := range 8 {
		s := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("t", i), UID: types.UID(fmt.Sprint("t", i))}}
		s.Spec = &v1alpha1.SubscriptionSpec{Package: "other"}
		others = append(others, s)
	}
	return objects, others
}

func drawPlan(t *rapid.T, name string) *v1alpha1.InstallPlan {
	one := func(label string, names ...string) string { return rapid.SampledFrom(names).Draw(t, label) }
	p := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "1"}}
	p.Spec.ClusterServiceVersionNames = []string{one("brings", "v1", "v2")}
	p.Spec.Generation = rapid.IntRange(0, 3).Draw(t, "generation")
	p.Spec.Approval, p.Spec.Approved = v1alpha1.Approval(one("approval", "Manual", "Automatic")), rapid.Bool().Draw(t, "approved")
	p.Status.Phase = v1alpha1.InstallPlanPhase(one("phase", "Complete", "Failed", "RequiresApproval", "Installing", ""))
	for _, version := range rapid.SliceOfN(rapid.SampledFrom([]string{"v1", "v2"}), 0, 2).Draw(t, "steps") {
		p.Status.Plan = append(p.Status.Plan, CSVStep(version), subscriptionStep(version, one("makes", "s0", "s3", "s9")))
	}
	if rapid.Bool().Draw(t, "started") {
		p.Status.StartTime = Ago(time.Minute)
	}
	if rapid.Bool().Draw(t, "finalizer") {
		p.Finalizers = []string{installplan.Finalizer}
	}
	list := func(label string, values ...string) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(values), 0, 2).Draw(t, label), ",")
	}
	p.Annotations = map[string]string{olmcore.KeyPrefix + "contributors": list("contributors", "", "u0", "u1"), olmcore.KeyPrefix + "packages": list("packages", "a", "b")}
	p.Labels = map[string]string{olmcore.ComponentLabelPrefix + one("label", "a", "b", "d") + ".ns": ""}
	for _, uid := range rapid.SliceOfN(rapid.SampledFrom([]string{"u0", "u2", "u9"}), 0, 2).Draw(t, "owners") {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Kind: "Subscription", Name: "s0", UID: types.UID(uid)})
	}
	return p
}

// subscriptionStep makes the Subscription of a dependency.
func subscriptionStep(version, name string) *v1alpha1.Step {
	return Step(version, v1alpha1.GroupName, "v1alpha1", "Subscription", name, `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"`+name+`"},"spec":{"name":"c"}}`)
}

// Faults strike any write of a run.
func Faults(t *rapid.T, c *fake.Cluster) {
	for range rapid.IntRange(0, 4).Draw(t, "faults") {
		c.Faults().Inject(fake.Fault{
			Verb: rapid.SampledFrom([]olmcore.Verb{"", olmcore.VerbCreate, olmcore.VerbUpdate, olmcore.VerbUpdateStatus}).Draw(t, "verb"),
			Nth:  rapid.IntRange(1, 8).Draw(t, "nth"),
			Mode: rapid.SampledFrom([]fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}).Draw(t, "mode"),
		})
	}
}
