// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// TestEveryEdgeIsTaken checks that a plan takes every edge of Phases.
func TestEveryEdgeIsTaken(t *testing.T) {
	blocked := Plan(Installing, []*v1alpha1.Step{Step("", "", "v1", "Gizmo", "g", "{}")}, Started(0))
	done := Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, Started(0))
	asked := func(approved bool) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, approved }
	}
	retried := input(Plan(Failed, []*v1alpha1.Step{CSVStep("a.v1")}, func(p *v1alpha1.InstallPlan) {
		p.Status.AttenuatedServiceAccountRef = olmReference("scoped")
	}))
	retried.RBACChanged = true
	overtaken := func(in *installplan.Input) {
		later := Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("a.v2")})
		later.ObjectMeta, later.Spec.Generation = Meta("install-y"), 2
		in.RelatedPlans = olmcore.Found(later)
	}
	taken := map[installplan.State]bool{"": true}
	for _, in := range []installplan.Input{
		input(Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("a.v1")}, asked(true))),
		input(Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, asked(false))),
		input(done, with(CSV("a.v1"))), input(blocked), retried,
		input(Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(Subscription("a"))), with(follows("a", "install-y", 2)), overtaken),
		input(Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(Subscription("a"))), with(follows("a", "install-y", 2)), overtaken),
	} {
		a := assess(t, in)
		require.Contains(t, installplan.Phases(), edge(in.InstallPlan.Status.Phase, a.Phase, a.State))
		taken[a.State] = true
	}
	for _, e := range installplan.Phases() {
		require.True(t, taken[installplan.State(e.By)], "%+v", e)
	}
}

// TestThePackageDocumentationShowsThePhaseGraph checks that doc.go lists the edges of Phases, in their order.
func TestThePackageDocumentationShowsThePhaseGraph(t *testing.T) {
	var want strings.Builder
	for _, e := range installplan.Phases() {
		from, by := string(e.From), e.By
		if from == "" {
			from = "none"
		}
		if by == "" {
			by = "(package create)"
		}
		fmt.Fprintf(&want, "//\t%-16s -> %-17s %s\n", from, e.To, by)
	}
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	require.Contains(t, string(doc), want.String())
}

// repairs reports whether the actions contain an Update of the metadata of the plan.
func repairs(a olmcore.Action) bool {
	return slices.Contains([]string{installplan.ReasonRelationRepaired, installplan.ReasonManualOwner, installplan.ReasonPlanDone}, reasonOf(a))
}

func reasonOf(a olmcore.Action) string {
	_, _, cause := a.Describe()
	return cause.Reason
}

// TestAssessIgnoresRelations checks a plan of OLM without the finalizer and some of the labels, and a finished plan
// that still has them.
func TestAssessIgnoresRelations(t *testing.T) {
	a := Subscription("a", RefersTo("install-x"))
	asked := func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false }
	for name, c := range map[string]struct {
		plan  *v1alpha1.InstallPlan
		phase v1alpha1.InstallPlanPhase
		want  installplan.State
	}{
		"waits":    {Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("a.v1")}, asked), RequiresApproval, installplan.StateRequiresApproval},
		"complete": {Plan(Complete, []*v1alpha1.Step{CSVStep("a.v1")}), Complete, installplan.StateComplete},
		"held": {
			Plan(Complete, []*v1alpha1.Step{CSVStep("a.v1")}, func(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} }), Complete, installplan.StateComplete,
		},
		"failed": {Plan(Failed, []*v1alpha1.Step{CSVStep("a.v1")}), Failed, installplan.StateTryingAgain},
		"starts": {Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}), Installing, installplan.StateStarting},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.plan, with(a))
			require.Len(t, reconcile(t, in).Actions, 1)
			require.True(t, repairs(reconcile(t, in).Actions[0]))
			got := assess(t, in)
			require.Equal(t, c.want, got.State)
			require.Equal(t, c.phase, got.Phase)
		})
	}
}

// TestNoOtherEdgeOccurs checks that no Input leads to an edge that is not in Phases, and that Assess decides as
// Reconcile does.
func TestNoOtherEdgeOccurs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := eitherInput(t)
		r, err := reconcileResult(in)
		require.NoError(t, err)
		from, to := in.InstallPlan.Status.Phase, statusOf(in, r).Phase
		a := assess(t, in)
		if len(r.Actions) == 1 && repairs(r.Actions[0]) {
			require.Empty(t, r.Transitions)
			return // Assess ignores relations
		}
		require.Equal(t, to, a.Phase)
		require.Equal(t, r.RequeueAfter, a.RequeueAfter)
		if from == to {
			require.Empty(t, r.Transitions)
			return
		}
		require.True(t, slices.Contains(installplan.Phases(), edge(from, to, a.State)), "%s -> %s in %s", from, to, a.State)
		require.Len(t, r.Transitions, 1)
		require.Equal(t, string(to), r.Transitions[0].To)
	})
}

func TestInvariantsOfEveryDecision(t *testing.T) {
	rounds, asked := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		rounds++
		in := eitherInput(t)
		p := in.InstallPlan
		r, err := reconcileResult(in)
		require.NoError(t, err)
		got := statusOf(in, r)
		var steps []olmcore.Action
		for _, a := range r.Actions {
			_, target, _ := a.Describe()
			if target.Kind == "InstallPlan" {
				continue
			}
			if p.DeletionTimestamp == nil {
				steps = append(steps, a)
			} else {
				require.Equal(t, "Subscription", target.Kind)
			}
			rulesOfActions(t, in, a)
			asked++
		}
		if len(steps) > 0 {
			require.Equal(t, Installing, p.Status.Phase)
			require.Equal(t, Installing, got.Phase)
			require.NotNil(t, p.Status.StartTime)
			require.NotEmpty(t, in.OperatorGroups)
		}
		if got.Phase == Complete && p.Status.Phase != Complete {
			require.Empty(t, steps)
			for _, s := range got.Plan {
				require.True(t, s.Status == Created || s.Status == Present || s.Optional && s.Status == v1alpha1.StepStatusNotCreated)
				require.True(t, s.Status == v1alpha1.StepStatusNotCreated || observes(in, s), "%s was not observed", s.Resource.Name)
			}
		}
		if before := p.Status.StartTime; before != nil && got.StartTime == nil {
			require.Equal(t, Failed, p.Status.Phase)
		} else if before != nil {
			require.Equal(t, before, got.StartTime)
		}
		for _, d := range r.Diagnostics {
			if d.Reason == installplan.ReasonStepRefused {
				require.Empty(t, steps, "a step is refused")
			}
		}
		changes, err := schemaChanges(in)
		require.NoError(t, err)
		for _, change := range changes {
			require.Same(t, in.CustomResourceDefinitions.Items[0], change.Before)
			for _, v := range in.CustomResources.Items {
				if len(v.New) > 0 && len(v.Old) == 0 && slices.Contains(change.Versions, v.Version) {
					require.Empty(t, steps, "a resource would become invalid")
				}
			}
		}
		for _, a := range steps {
			if u, ok := a.(olmcore.Update); ok {
				require.True(t, judged(u, changes), "a schema changes without validation")
			}
		}
		for i, s := range got.Plan {
			if len(got.Plan) == len(p.Status.Plan) && s != nil && s.Status == WaitingAPI && p.Status.Plan[i] != nil && p.Status.Plan[i].Status != WaitingAPI {
				require.Equal(t, "CustomResourceDefinition", s.Resource.Kind)
			}
		}
	})
	if rounds >= 100 {
		require.Greater(t, asked, rounds/10, "too few inputs reached the rules")
	}
}

// judged reports whether the schemas that an update changes were validated.
func judged(u olmcore.Update, changes []installplan.SchemaChange) bool {
	before, ok := u.Before.(*apiextensionsv1.CustomResourceDefinition)
	if !ok || len(before.Spec.Versions) == 0 {
		return true
	}
	after := u.After.(*apiextensionsv1.CustomResourceDefinition)
	if after.Spec.Versions[0].Name != before.Spec.Versions[0].Name || cmp.Equal(after.Spec.Versions[0].Schema, before.Spec.Versions[0].Schema) {
		return true
	}
	return slices.ContainsFunc(changes, func(c installplan.SchemaChange) bool { return c.Before == before })
}

// observes reports whether the Input contains the object of a step.
func observes(in installplan.Input, s *v1alpha1.Step) bool {
	switch name := s.Resource.Name; s.Resource.Kind {
	case "ClusterServiceVersion":
		return versionIn(in, name) != nil
	case "CustomResourceDefinition":
		return slices.ContainsFunc(in.CustomResourceDefinitions.Items, func(o *apiextensionsv1.CustomResourceDefinition) bool { return o.Name == name })
	case "Subscription":
		return slices.ContainsFunc(in.Subscriptions.Items, func(o *v1alpha1.Subscription) bool { return o.Name == name })
	}
	kind := strings.TrimPrefix(s.Resource.Kind, "Bundle")
	return slices.ContainsFunc(in.Objects.Items, func(o olmcore.Object) bool { return olmcore.KeyOf(o).Kind == kind && o.GetName() == s.Resource.Name })
}

// rulesOfActions checks a write to the object of a step.
func rulesOfActions(t *rapid.T, in installplan.Input, a olmcore.Action) {
	_, target, _ := a.Describe()
	var o olmcore.Object
	switch a := a.(type) {
	case olmcore.Create:
		o = a.Object
		require.Equal(t, "true", o.GetLabels()[olmcore.LabelManaged], "%s", target)
		for _, s := range in.InstallPlan.Status.Plan {
			if s == nil || s.Resolving == "" || s.Resource.Name != target.Name || strings.TrimPrefix(s.Resource.Kind, "Bundle") != target.Kind || s.Resource.Kind == "Secret" {
				continue
			}
			if owner := versionIn(in, s.Resolving); owner != nil && target.Namespace != "" && target.Kind != "ClusterServiceVersion" && target.Kind != "Subscription" {
				require.True(t, olmcore.OwnedBy(o, owner.UID), "%s is not owned by %s", target, s.Resolving)
			}
		}
	case olmcore.Update:
		o = a.After
		keeps(t, target, a.Before, a.After)
		if !isManaged(a.Before) && target.Kind != "CustomResourceDefinition" {
			require.False(t, isManaged(o), "%s became managed", target)
		}
		if crd, ok := a.Before.(*apiextensionsv1.CustomResourceDefinition); ok {
			for _, stored := range crd.Status.StoredVersions {
				require.True(t, slices.ContainsFunc(a.After.(*apiextensionsv1.CustomResourceDefinition).Spec.Versions,
					func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }), "version %s is lost", stored)
			}
		}
	case olmcore.Delete:
		require.NotEmpty(t, a.Target.UID)
		i := slices.IndexFunc(in.Objects.Items, func(o olmcore.Object) bool { return o.GetUID() == a.Target.UID && olmcore.KeyOf(o) == target.Key() })
		require.GreaterOrEqual(t, i, 0, "%s is not an object of a step", target)
		require.True(t, isManaged(in.Objects.Items[i]), "%s is not managed", target)
		for _, ref := range in.Objects.Items[i].GetOwnerReferences() {
			require.True(t, ref.Kind != "ClusterServiceVersion" || describedFor(in, target, ref.Name), "%s belongs to %s", target, ref.Name)
		}
	}
	if o == nil {
		return
	}
	seen := map[string]bool{}
	for _, ref := range o.GetOwnerReferences() {
		require.NotEmpty(t, ref.UID)
		require.False(t, seen[string(ref.UID)], "%s has an owner twice", target)
		seen[string(ref.UID)] = true
	}
}

// describedFor reports whether a step describes an object for a version.
func describedFor(in installplan.Input, target olmcore.Ref, version string) bool {
	return slices.ContainsFunc(in.InstallPlan.Status.Plan, func(s *v1alpha1.Step) bool {
		return s != nil && s.Resolving == version && s.Resource.Name == target.Name && strings.TrimPrefix(s.Resource.Kind, "Bundle") == target.Kind
	})
}

// keeps checks that an update keeps what others wrote.
func keeps(t *rapid.T, target olmcore.Ref, before, after olmcore.Object) {
	for key := range before.GetLabels() {
		require.Contains(t, after.GetLabels(), key, "%s lost a label", target)
	}
	for key, value := range before.GetAnnotations() {
		if key != installplan.AnnotationGeneratedBy && key != stepHash {
			require.Equal(t, value, after.GetAnnotations()[key], "%s lost an annotation", target)
		}
	}
	require.Subset(t, after.GetFinalizers(), before.GetFinalizers(), "%s lost a finalizer", target)
	for _, ref := range before.GetOwnerReferences() {
		require.True(t, olmcore.OwnedBy(after, ref.UID), "%s lost an owner", target)
	}
}

func versionIn(in installplan.Input, name string) *v1alpha1.ClusterServiceVersion {
	for _, c := range in.ClusterServiceVersions.Items {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func isManaged(o olmcore.Object) bool {
	return o.GetLabels()[olmcore.LabelManaged] == "true" || o.GetLabels()[olmcore.LabelOwner] != "" ||
		slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Kind == "ClusterServiceVersion" })
}

func edge(from, to v1alpha1.InstallPlanPhase, state installplan.State) olmcore.Edge[v1alpha1.InstallPlanPhase] {
	return olmcore.Edge[v1alpha1.InstallPlanPhase]{From: from, To: to, By: string(state)}
}

func olmReference(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: NS, Name: name}
}

// anyStep returns a step of any kind in any state.
func anyStep(t *rapid.T) *v1alpha1.Step {
	s := stepOfKind(t, rapid.IntRange(0, 15).Draw(t, "kind"))
	if s == nil {
		return nil
	}
	s.Status = rapid.SampledFrom([]v1alpha1.StepStatus{
		Unknown, Unknown, Unknown, NotPresent, NotPresent, Created, Present, WaitingAPI, v1alpha1.StepStatusNotCreated, "Odd",
	}).Draw(t, "status")
	s.Optional = rapid.IntRange(0, 9).Draw(t, "optional") == 0
	return s
}

// plausibleStep returns a step that package create may write.
func plausibleStep(t *rapid.T) *v1alpha1.Step {
	s := stepOfKind(t, rapid.SampledFrom([]int{0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 14}).Draw(t, "kind"))
	s.Resolving = rapid.SampledFrom([]string{"a.v1", "b.v1"}).Draw(t, "for")
	s.Status = rapid.SampledFrom([]v1alpha1.StepStatus{Unknown, Unknown, NotPresent, NotPresent, Created, Present}).Draw(t, "status")
	return s
}

func stepOfKind(t *rapid.T, kind int) *v1alpha1.Step {
	resolving := rapid.SampledFrom([]string{"a.v1", "b.v1", "gone.v1", ""}).Draw(t, "resolving")
	name := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name")
	plain := func(group, kind, rest string) *v1alpha1.Step {
		return Step(resolving, group, "v1", kind, name, `{"metadata":{"name":"`+name+`"}`+rest+`}`)
	}
	var s *v1alpha1.Step
	switch kind {
	case 0, 1:
		s = CSVStep(rapid.SampledFrom([]string{"a.v1", "b.v1"}).Draw(t, "csv"))
	case 2, 3:
		s = CRDStep(resolving, "v1")
	case 4:
		s = plain("rbac.authorization.k8s.io", "RoleBinding", `,"roleRef":{"kind":"Role","name":"new"}`)
	case 5:
		s = plain("rbac.authorization.k8s.io", "ClusterRole", `,"rules":[]`)
	case 6:
		s = plain("", "ServiceAccount", "")
	case 7:
		s = plain("", "Service", `,"spec":{"ports":[{"port":80}]}`)
	case 8:
		s = plain("", "ConfigMap", `,"data":{"a":"1"}`)
	case 9:
		s = plain("", "BundleSecret", `,"type":"Opaque"`)
		s.Resource.Manifest = `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"` + name + `"}}`
	case 10:
		s = plain("operators.coreos.com", "Subscription", `,"spec":{"name":"p"}`)
	case 11:
		s = Step(resolving, "policy", "v1", "PodDisruptionBudget", name, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"`+name+`"},"spec":{"minAvailable":1}}`)
	case 12:
		s = Step(resolving, "", "v1", rapid.SampledFrom([]string{"Gizmo", "Role", "ServiceMonitor", "CustomResourceDefinition"}).Draw(t, "odd"), name,
			rapid.SampledFrom([]string{"", "{", "[]", "null", `{"metadata":{}}`, "kind: Role\nmetadata: {name: x}\n---\nkind: Role"}).Draw(t, "manifest"))
	case 13:
		if Maybe(t, "nil") {
			return nil
		}
		s = Step("", "", "v1", "Secret", name, "")
	default:
		s = RoleStep(resolving, name)
	}
	return s
}

func anyObjects(t *rapid.T, in *installplan.Input) {
	for _, name := range []string{"a.v1", "b.v1"} {
		if Maybe(t, "has csv") {
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, CSV(name, func(c *v1alpha1.ClusterServiceVersion) { c.ObjectMeta = AnyMeta(t, name, NS) }))
		}
	}
	if Maybe(t, "has crd") {
		crd := Installed(CRDObject(rapid.SampledFrom([]string{"v0", "v1"}).Draw(t, "version")), Maybe(t, "established"))
		crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
		if Maybe(t, "other schema") {
			other(crd, 0)
		}
		for _, name := range []string{"x", "y"} {
			if Maybe(t, "judged") {
				v := installplan.ResourceVerdict{CustomResourceDefinition: crd.Name, Version: "v1", Namespace: NS, Name: name}
				if Maybe(t, "invalid") {
					v.New = []string{"bad"}
				}
				if Maybe(t, "invalid already") {
					v.Old = []string{"bad"}
				}
				in.CustomResources.Items = append(in.CustomResources.Items, v)
			}
		}
		in.CustomResourceDefinitions.Items = append(in.CustomResourceDefinitions.Items, crd)
	}
	for _, name := range []string{"x", "y"} {
		for _, o := range []olmcore.Object{
			&rbacv1.Role{}, &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "old"}}, &rbacv1.ClusterRole{}, &corev1.ServiceAccount{},
			&corev1.Service{}, &corev1.ConfigMap{Data: map[string]string{"b": "2"}}, &corev1.Secret{Type: "Other"},
		} {
			if !Maybe(t, "has object") {
				continue
			}
			namespace := NS
			if _, ok := o.(*rbacv1.ClusterRole); ok {
				namespace = ""
			}
			m := AnyMeta(t, name, namespace)
			o.SetName(name)
			o.SetNamespace(namespace)
			o.SetUID(m.UID)
			o.SetResourceVersion("1")
			o.SetLabels(m.Labels)
			o.SetAnnotations(m.Annotations)
			o.SetFinalizers(m.Finalizers)
			o.SetOwnerReferences(m.OwnerReferences)
			o.SetDeletionTimestamp(m.DeletionTimestamp)
			in.Objects.Items = append(in.Objects.Items, o)
		}
	}
}

// plausibleInput returns a plan that is being installed, over any objects.
func plausibleInput(t *rapid.T) installplan.Input {
	var steps []*v1alpha1.Step
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		steps = append(steps, plausibleStep(t))
	}
	in := input(Plan(Installing, steps, Started(time.Duration(rapid.IntRange(0, 50).Draw(t, "since"))*time.Second)))
	anyObjects(t, &in)
	for _, name := range []string{"a.v1", "b.v1"} {
		if versionIn(in, name) == nil && Maybe(t, "version") {
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, CSV(name))
		}
	}
	if Maybe(t, "last run") {
		in.LastRun = olmcore.LastResults{}
		for _, o := range in.Objects.Items {
			if Maybe(t, "was written") {
				in.LastRun[olmcore.KeyOf(o)] = olmcore.LastResult{Count: 1}
			}
		}
	}
	return in
}

func eitherInput(t *rapid.T) installplan.Input {
	return rapid.SampledFrom([]func(*rapid.T) installplan.Input{anyInput, plausibleInput}).Draw(t, "input")(t)
}

// anyInput returns a plan in any phase, with steps of any kind and any state of the cluster.
func anyInput(t *rapid.T) installplan.Input {
	var steps []*v1alpha1.Step
	for range rapid.IntRange(0, 6).Draw(t, "steps") {
		steps = append(steps, anyStep(t))
	}
	phase := rapid.SampledFrom([]v1alpha1.InstallPlanPhase{
		None, "Odd", RequiresApproval, RequiresApproval, Installing, Installing, Installing, Installing, Complete, Failed,
	}).Draw(t, "phase")
	p := Plan(phase, steps)
	if Maybe(t, "started") {
		p.Status.StartTime = Ago(time.Duration(rapid.IntRange(-5, 700).Draw(t, "since")) * time.Second)
	}
	if Maybe(t, "approval") {
		p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, Maybe(t, "approved")
	}
	if rapid.IntRange(0, 9).Draw(t, "deleted") == 0 {
		p.DeletionTimestamp = Ago(time.Duration(rapid.IntRange(0, 90).Draw(t, "deleted since")) * time.Second)
	}
	p.Status.Message = rapid.SampledFrom([]string{"", "waiting for x", "retrying execution due to error: x", "risk of data loss updating x"}).Draw(t, "message")
	if Maybe(t, "lookup") {
		p.Status.BundleLookups = []v1alpha1.BundleLookup{{Identifier: "b", Conditions: []v1alpha1.BundleLookupCondition{{
			Type:   rapid.SampledFrom([]v1alpha1.BundleLookupConditionType{v1alpha1.BundleLookupPending, v1alpha1.BundleLookupFailed}).Draw(t, "lookup type"),
			Status: rapid.SampledFrom([]corev1.ConditionStatus{"True", "False"}).Draw(t, "lookup status"),
		}}}}
	}
	in := input(p)
	for _, name := range []string{"a", "b"} {
		if Maybe(t, "has subscription") {
			s := AnySubscription(t, name)
			in.Subscriptions.Items = append(in.Subscriptions.Items, s)
			if s.Spec != nil && s.UID != "" && Maybe(t, "owns") {
				OwnedBy(s)(p)
			}
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "no group") == 0 {
		in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
	} else if rapid.IntRange(0, 5).Draw(t, "scoped") == 0 {
		in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup](Group(func(g *operatorsv1.OperatorGroup) {
			g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = "scoped", olmReference("scoped")
		}))
		p.Status.AttenuatedServiceAccountRef = olmReference("scoped")
		if Maybe(t, "account") {
			in.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: Meta("scoped")}
		}
	}
	anyObjects(t, &in)
	if Maybe(t, "last run") {
		in.LastRun = olmcore.LastResults{}
		for _, key := range []olmcore.Key{
			{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: NS, Name: "x"}, {Kind: "ConfigMap", Namespace: NS, Name: "x"},
			{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition", Name: "things.example.com"},
		} {
			in.LastRun[key] = olmcore.LastResult{Count: 1, Message: "no", Class: rapid.SampledFrom([]olmcore.ErrorClass{
				olmcore.ClassNone, olmcore.Gone, olmcore.NoMatch, olmcore.Conflict, olmcore.Transient, olmcore.Forbidden, olmcore.Invalid, olmcore.Webhook,
			}).Draw(t, "class")}
		}
	}
	if rapid.IntRange(0, 15).Draw(t, "namespace goes") == 0 {
		in.Namespace = olmcore.Found(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: NS, DeletionTimestamp: Ago(time.Second)}})
	}
	in.RBACChanged = rapid.IntRange(0, 5).Draw(t, "rbac") == 0
	return in
}
