// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

func objectOf(a olmcore.Action) olmcore.Object {
	switch a := a.(type) {
	case olmcore.Create:
		return a.Object
	case olmcore.Update:
		return a.After
	case olmcore.UpdateStatus:
		return a.After
	}
	return nil
}

const versionText = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: a.v1}
spec: {displayName: Cool, install: {strategy: deployment}}
`

func crdStepNamed(name string) *v1alpha1.Step {
	crd := CRDObject("v1")
	crd.Name, crd.Spec.Names.Kind = name, "Other"
	return Step("", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", name, crd)
}

// TestStepStatusFollowsTheObservedObject checks the status and action of a step for each recorded status and observed
// object.
func TestStepStatusFollowsTheObservedObject(t *testing.T) {
	live := CSV("a.v1")
	role := RoleStep("a.v1", "r")
	made := applied(t, role, live)
	edited := made.DeepCopyObject().(*rbacv1.Role)
	edited.Annotations = nil
	edited.Rules = nil
	leaving := made.DeepCopyObject().(olmcore.Object)
	leaving.SetDeletionTimestamp(Ago(time.Second))
	crd := CRDStep("a.v1", "v1")
	up := applied(t, crd, live)
	old := up.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
	old.Annotations = nil
	other(old, 0)
	down := up.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
	down.Status.Conditions = nil
	down.CreationTimestamp = metav1.NewTime(Noon)

	for name, c := range map[string]struct {
		step     *v1alpha1.Step
		recorded v1alpha1.StepStatus
		observed []olmcore.Object
		want     v1alpha1.StepStatus
		actions  []string
		phase    v1alpha1.InstallPlanPhase
	}{
		"unknown and absent: created": {
			role, Unknown, nil, NotPresent, []string{status, "create Role ops/r (StepAbsent)"}, Installing,
		},
		"being created and absent: created again": {role, NotPresent, nil, NotPresent, []string{"create Role ops/r (StepAbsent)"}, Installing},
		"being created and observed: Created":     {role, NotPresent, []olmcore.Object{made}, Created, []string{status}, Complete},
		"unknown and observed: Present":           {role, Unknown, []olmcore.Object{made}, Present, []string{status}, Complete},
		"unknown and different: updated": {
			role, Unknown, []olmcore.Object{edited}, Unknown, []string{"update Role ops/r (StepDiffers)"}, Installing,
		},
		"being created and different: updated": {
			role, NotPresent, []olmcore.Object{edited}, Unknown, []string{status, "update Role ops/r (StepDiffers)"}, Installing,
		},
		"unknown and being deleted: waits":      {role, Unknown, []olmcore.Object{leaving}, Unknown, []string{status}, Installing},
		"Created and observed: not compared":    {role, Created, []olmcore.Object{edited}, Created, []string{status}, Complete},
		"Created and absent: created again":     {role, Created, nil, NotPresent, []string{status, "create Role ops/r (StepAbsent)"}, Installing},
		"Present and being deleted: waits":      {role, Present, []olmcore.Object{leaving}, Present, []string{status}, Installing},
		"a role does not wait for an API":       {role, WaitingAPI, []olmcore.Object{made}, Present, []string{status}, Complete},
		"a CRD that is served: present":         {crd, Unknown, []olmcore.Object{up}, Present, []string{status}, Complete},
		"a CRD that is being created: Created":  {crd, NotPresent, []olmcore.Object{up}, Created, []string{status}, Complete},
		"a CRD that is not served: waits":       {crd, NotPresent, []olmcore.Object{down}, WaitingAPI, []string{status}, Installing},
		"a CRD that becomes served: Created":    {crd, WaitingAPI, []olmcore.Object{up}, Created, []string{status}, Complete},
		"a CRD that is still not served: waits": {crd, WaitingAPI, []olmcore.Object{down}, WaitingAPI, []string{status}, Installing},
		"a CRD that waits and differs: updated": {
			crd, WaitingAPI, []olmcore.Object{old}, WaitingAPI, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Installing,
		},
		"a CRD that was deleted: created again": {
			crd, WaitingAPI, nil, NotPresent, []string{status, "create CustomResourceDefinition things.example.com (StepAbsent)"}, Installing,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := WithStatus(c.recorded, c.step.DeepCopy())
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(live), with(c.observed...))
			r := reconcile(t, in)
			Same(t, c.actions, Describe(r))
			got := statusOf(in, r)
			require.Equal(t, c.want, got.Plan[0].Status)
			require.Equal(t, c.phase, got.Phase)
		})
	}
}

// TestRefusedStepStopsTheWholePlan checks each reason to refuse a step. The other step of the plan could be applied,
// but is not.
func TestRefusedStepStopsTheWholePlan(t *testing.T) {
	generic := func(kind, apiVersion string) *v1alpha1.Step {
		gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
		return Step("", gvk.Group, gvk.Version, kind, "x", `{"apiVersion":"`+apiVersion+`","kind":"`+kind+`","metadata":{"name":"x"}}`)
	}
	stranger := CSV("other.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "things.example.com"}}
	})
	owner := Step("a.v1", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "a.v1",
		`{"metadata":{"name":"a.v1"},"spec":{"customresourcedefinitions":{"owned":[{"name":"things.example.com"}]}}}`)
	unnamed := func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = nil }
	served := Installed(CRDObject("v0", "v1"), true)
	served.Status.StoredVersions = []string{"v0", "v1"}
	clusterScoped := CRDStep("", "v1")
	const invalidData = "the InstallPlan contains invalid data"

	for name, c := range map[string]struct {
		step     *v1alpha1.Step
		observed []olmcore.Object
		change   func(*v1alpha1.InstallPlan)
		in       func(*installplan.Input)
		want     string
		final    bool
	}{
		"no step":           {step: nil, want: invalidData, final: true},
		"no kind":           {step: Step("", "", "v1", "", "x", `{}`), want: invalidData, final: true},
		"no name":           {step: Step("", "", "v1", "Role", "", `{}`), want: invalidData, final: true},
		"an invalid status": {step: WithStatus("Odd", RoleStep("", "r")), want: invalidData, final: true},
		"an unsupported resource": {step: WithStatus("UnsupportedResource", RoleStep("", "r")),
			want: invalidData + ": Role r is of a kind that bundles may not contain", final: true},
		"a bundle that was not unpacked": {
			step: Step("", "", "v1", "Service", "x", `{"kind":"ConfigMap","name":"h","namespace":"olm","catalogSourceName":"c","catalogSourceNamespace":"olm","replaces":"","properties":"{}"}`),
			want: "error finding unpacked bundle configmap for ref {ConfigMap h olm c olm  {}}: configmaps \"h\" not found",
		},
		"a reference that lacks a field": {step: Step("", "", "v1", "Service", "x", `{"kind":"ConfigMap","name":"h","namespace":"olm","catalogSourceName":"c"}`), final: true,
			want: "error parsing step manifest: x: it has no metadata"},
		"a reference in a step of a generic kind": {step: Step("", "policy", "v1", "PodDisruptionBudget", "x", `{"kind":"ConfigMap","name":"h","namespace":"olm","catalogSourceName":"c"}`), final: true,
			want: "error decoding x object to an unstructured object: it has no metadata"},
		"an invalid manifest": {step: Step("", "", "v1", "Role", "x", `{"metadata":`), final: true,
			want: "error parsing step manifest: x: unexpected end of JSON input"},
		"another kind": {step: Step("", "", "v1", "Role", "x", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"}}`), final: true,
			want: "error parsing step manifest: x: kind is Service"},
		"a broken CRD": {step: Step("", "", "v1", "CustomResourceDefinition", "x", `[]`), final: true,
			want: "v1 crd unmarshaling failed: json: cannot unmarshal array into Go value of type map[string]interface {}"},
		"an unknown version of the CRD API": {step: Step("", "", "v1", "CustomResourceDefinition", "x", `{"apiVersion":"apiextensions.k8s.io/v7","kind":"CustomResourceDefinition","metadata":{"name":"x"}}`),
			want: "CRD APIVersion from manifest not supported: apiextensions.k8s.io/v7", final: true},
		"a removed version of the CRD API": {step: Step("", "", "v1", "CustomResourceDefinition", "x", `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"x"}}`),
			want: "api-server resource not found installing CustomResourceDefinition x: GroupVersionKind apiextensions.k8s.io/v1beta1, Kind=CustomResourceDefinition not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."},
		"a kind that is not supported": {step: generic("Gizmo", "example.com/v1"),
			want: invalidData + ": Gizmo x is of a kind that bundles may not contain", final: true},
		"a version that is not served": {step: generic("ServiceMonitor", "monitoring.coreos.com/v1"),
			want: "api-server resource not found installing ServiceMonitor x: GroupVersionKind monitoring.coreos.com/v1, Kind=ServiceMonitor not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."},
		"a kind that its version does not have": {step: generic("ServiceMonitor", "policy/v1"),
			want: "Unable to find GVK in discovery: policy v1 ServiceMonitor"},
		"another owner of a CRD": {step: owner, observed: []olmcore.Object{stranger}, change: unnamed,
			want: "pre-existing CRD owners found for owned CRD(s) of dependent CSV a.v1"},
		"several owners of a CRD": {step: owner, change: unnamed,
			observed: []olmcore.Object{stranger, CSV("more.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Spec = stranger.Spec })},
			want:     "error checking crd owners for: a.v1: Existing CSVs [more.v1 other.v1] in namespace ops all claim to own CRD things.example.com"},
		"a copy has the name": {step: CSVStep("a.v1"),
			observed: []olmcore.Object{CSV("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "there"} })},
			want:     "a copy of ClusterServiceVersion a.v1 from namespace there exists here"},
		"a stored version would be lost": {step: CRDStep("", "v1"), observed: []olmcore.Object{served},
			want: `risk of data loss updating "things.example.com": new CRD removes version v0 that is listed as a stored version on the existing CRD`},
		"no versions": {step: CRDStep(""), want: "could not find any versions in the new CRD"},
		"the kind cannot change": {step: Step("", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", func() any {
			crd := CRDObject("v1")
			crd.Spec.Names.Kind = "Object"
			return crd
		}()), observed: []olmcore.Object{Installed(CRDObject("v1"), true)},
			want: "CustomResourceDefinition things.example.com: spec.names.kind is immutable"},
		"the scope cannot change": {step: clusterScoped,
			observed: []olmcore.Object{func() olmcore.Object {
				crd := Installed(CRDObject("v0"), true)
				crd.Spec.Scope = apiextensionsv1.ClusterScoped
				return crd
			}()},
			want: "CustomResourceDefinition things.example.com: spec.scope is immutable"},
		"a resource would become invalid": {step: CRDStep("", "v1"), observed: []olmcore.Object{func() olmcore.Object {
			crd := Installed(CRDObject("v1"), true)
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "older"
			return crd
		}()},
			in: func(in *installplan.Input) {
				in.CustomResources = olmcore.Found(installplan.ResourceVerdict{CustomResourceDefinition: "things.example.com", Version: "v1", Namespace: "n", Name: "t", New: []string{"too big"}})
			},
			want: `error validating existing CRs against new CRD's schema for "things.example.com": error validating example.com/v1, Kind=Thing "n/t": updated validation is too restrictive: too big`},
		"the pull Secret does not exist": {step: Step("", "", "v1", "Secret", "pull", ``),
			want: `secret pull does not exist - secrets "pull" not found`},
		"an invalid label": {step: Step("a/b", "rbac.authorization.k8s.io", "v1", "ClusterRole", "x", `{"metadata":{"name":"x"}}`), final: true,
			want: `ClusterRole x: label olm.owner="a/b" is not valid`},
		"an object without a name": {step: Step("", "", "v1", "Service", "x-", `{"metadata":{"generateName":"x-"}}`),
			want: "object of step x- has no name"},
		"an owner that has no UID yet": {step: RoleStep("gone.v1", "r"), observed: []olmcore.Object{CSV("gone.v1", func(c *v1alpha1.ClusterServiceVersion) { c.UID = "" })},
			want: `error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "gone.v1" not found`},
		"an owner that does not exist": {step: RoleStep("gone.v1", "r"),
			want: `error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "gone.v1" not found`},
		"an unmanaged binding to another role": {
			step: Step("", "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "x", `{"metadata":{"name":"x"},"roleRef":{"kind":"ClusterRole","name":"new"}}`),
			observed: []olmcore.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: ClusterMeta("x"),
				RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "old"}}},
			want: "ClusterRoleBinding x exists and its roleRef is immutable"},
		"an account that was deleted": {step: RoleStep("", "r"), want: `serviceaccounts "scoped" not found`,
			change: func(p *v1alpha1.InstallPlan) {
				p.Status.AttenuatedServiceAccountRef = &corev1.ObjectReference{Namespace: NS, Name: "scoped"}
			},
			in: func(in *installplan.Input) {
				in.OperatorGroups.Items[0].Spec.ServiceAccountName = "scoped"
				in.OperatorGroups.Items[0].Status.ServiceAccountRef = &corev1.ObjectReference{Namespace: NS, Name: "scoped"}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(Installing, []*v1alpha1.Step{c.step, crdStepNamed("others.example.com")}, Started(time.Second))
			if c.change != nil {
				c.change(p)
			}
			in := input(p, with(c.observed...))
			if c.in != nil {
				c.in(&in)
			}
			r := reconcile(t, in)
			Same(t, []string{status}, Describe(r))
			got := statusOf(in, r)
			require.Equal(t, Unknown, got.Plan[len(got.Plan)-1].Status, "the other object is not created")
			if c.final {
				require.Equal(t, c.want, got.Message)
				require.Equal(t, Failed, got.Phase)
				return
			}
			require.Equal(t, "retrying execution due to error: "+c.want, got.Message)
			require.Equal(t, Installing, got.Phase)
			require.Contains(t, r.Diagnostics, diagnostic(p, olmcore.Warning, installplan.ReasonStepRefused, "status.plan[0]", c.want))

			// Before the approval, the message is the same and nothing is written.
			p.Status.Phase, p.Spec.Approval, p.Spec.Approved = RequiresApproval, v1alpha1.ApprovalManual, false
			r = reconcile(t, in)
			require.Empty(t, r.Actions)
			require.Contains(t, r.Diagnostics, diagnostic(p, olmcore.Warning, installplan.ReasonStepRefused, "status.plan[0]", c.want))
		})
	}
}

// TestDetailsOfSingleSteps checks the actions and the message for steps whose details decide.
func TestDetailsOfSingleSteps(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	served := applied(t, CRDStep("", "v1"))
	thing := func(version string) *v1alpha1.Step {
		return Step("", "example.com", version, "Thing", "x", `{"apiVersion":"example.com/`+version+`","kind":"Thing","metadata":{"name":"x"}}`)
	}
	optional := func(s *v1alpha1.Step) *v1alpha1.Step { s.Optional = true; return s }
	bound, scope := scopedTo(&corev1.ObjectReference{Namespace: NS, Name: "scoped"})
	copiedFrom := func(change func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
		return CSV("a.v1", change)
	}
	misnamed := Step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"y"}}`)
	for name, c := range map[string]struct {
		steps    []*v1alpha1.Step
		observed []olmcore.Object
		change   func(*v1alpha1.InstallPlan)
		in       func(*installplan.Input)
		actions  []string
		statuses []v1alpha1.StepStatus
		message  string
		phase    v1alpha1.InstallPlanPhase
		reasons  []string
	}{
		"an optional step without its API is left out": {
			steps:   []*v1alpha1.Step{optional(Step("", "monitoring.coreos.com", "v1", "ServiceMonitor", "m", `{"apiVersion":"monitoring.coreos.com/v1","kind":"ServiceMonitor","metadata":{"name":"m"}}`))},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{v1alpha1.StepStatusNotCreated}, phase: Complete, reasons: []string{installplan.ReasonOptionalStepSkipped}},
		"an invalid step does not move the others": {steps: []*v1alpha1.Step{nil, RoleStep("", "r")}, actions: []string{status},
			statuses: []v1alpha1.StepStatus{Unknown}, message: "the InstallPlan contains invalid data", phase: Failed},
		"kinds that a plan may define keep their place": {
			steps:   []*v1alpha1.Step{Step("", "policy", "v1", "PodDisruptionBudget", "x", `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x"}}`), RoleStep("", "r")},
			actions: []string{status, "create PodDisruptionBudget ops/x (StepAbsent)", "create Role ops/r (StepAbsent)"}, statuses: []v1alpha1.StepStatus{NotPresent, NotPresent}, phase: Installing},
		"a step that was created under another name stays Created": {steps: []*v1alpha1.Step{WithStatus(Created, misnamed)}, observed: []olmcore.Object{applied(t, misnamed)},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{Created}, phase: Complete},
		"a definition needs no account": {steps: []*v1alpha1.Step{CRDStep("", "v1")}, change: bound, in: scope,
			actions: []string{status, "create CustomResourceDefinition things.example.com (StepAbsent)"}, statuses: []v1alpha1.StepStatus{NotPresent}, phase: Installing},
		"a version that became a copy": {steps: []*v1alpha1.Step{WithStatus(Present, CSVStep("a.v1"))},
			observed: []olmcore.Object{copiedFrom(func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "there"} })},
			actions:  []string{status}, statuses: []v1alpha1.StepStatus{Present}, message: "retrying execution due to error: a copy of ClusterServiceVersion a.v1 from namespace there exists here", phase: Installing},
		"a copy, as its status says": {steps: []*v1alpha1.Step{CSVStep("a.v1")},
			observed: []olmcore.Object{copiedFrom(func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied })},
			actions:  []string{status}, statuses: []v1alpha1.StepStatus{Unknown}, message: "retrying execution due to error: a copy of ClusterServiceVersion a.v1 from namespace  exists here", phase: Installing},
		"a copy, as its annotation says": {steps: []*v1alpha1.Step{CSVStep("a.v1")},
			observed: []olmcore.Object{copiedFrom(func(c *v1alpha1.ClusterServiceVersion) {
				c.Annotations = map[string]string{"olm.operatorNamespace": "there"}
			})},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{Unknown}, message: "retrying execution due to error: a copy of ClusterServiceVersion a.v1 from namespace there exists here", phase: Installing},
		"a version with an annotation that is no copy": {steps: []*v1alpha1.Step{CSVStep("a.v1")},
			observed: []olmcore.Object{copiedFrom(func(c *v1alpha1.ClusterServiceVersion) {
				c.Annotations = map[string]string{"olm.operatorNamespace": NS}
			})},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{Present}, phase: Complete},
		"an optional step that was skipped": {steps: []*v1alpha1.Step{optional(WithStatus(v1alpha1.StepStatusNotCreated, thing("v1")))},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{v1alpha1.StepStatusNotCreated}, phase: Complete},
		"a skipped step that is not optional": {
			steps:   []*v1alpha1.Step{WithStatus(v1alpha1.StepStatusNotCreated, thing("v1"))},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{v1alpha1.StepStatusNotCreated}, phase: Complete,
		},
		"an optional step that is refused for another reason": {steps: []*v1alpha1.Step{optional(Step("", "", "v1", "Role", "x", `{}`))},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{Unknown}, message: "error parsing step manifest: x: it has no metadata", phase: Failed},
		"a namespace in the manifest of a cluster-scoped object": {steps: []*v1alpha1.Step{Step("", rbac, "v1", "ClusterRole", "x", `{"metadata":{"name":"x","namespace":"there"}}`)},
			actions: []string{status, "create ClusterRole x (StepAbsent)"}, statuses: []v1alpha1.StepStatus{NotPresent}, phase: Installing},
		"a manifest of the same kind and another group": {steps: []*v1alpha1.Step{Step("", rbac, "v1", "Role", "x", `{"apiVersion":"example.com/v1","kind":"Role","metadata":{"name":"x"}}`)},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{Unknown}, message: "error parsing step manifest: x: kind is Role.example.com", phase: Failed},
		"a generic kind with the manifest of another": {steps: []*v1alpha1.Step{Step("", "policy", "v1", "PodDisruptionBudget", "x", `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"x"}}`)},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{Unknown}, message: "error parsing step manifest: x: kind is NetworkPolicy.networking.k8s.io", phase: Failed},
		"a version that the plan's definition does not have": {steps: []*v1alpha1.Step{CRDStep("", "v1"), thing("v2")}, observed: []olmcore.Object{served},
			in:      func(in *installplan.Input) { in.Config.SupportedKinds = []string{"Thing"} },
			actions: []string{status}, statuses: []v1alpha1.StepStatus{Present, Unknown}, phase: Installing,
			message: "retrying execution due to error: api-server resource not found installing Thing x: GroupVersionKind example.com/v2, Kind=Thing not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."},
		"a definition of the plan for the same kind of another group": {
			steps: []*v1alpha1.Step{CRDStep("", "v1"), Step("", "other.com", "v1", "Thing", "x", `{"apiVersion":"other.com/v1","kind":"Thing","metadata":{"name":"x"}}`)},
			in:    func(in *installplan.Input) { in.Config.SupportedKinds = []string{"Thing"} }, actions: []string{status}, statuses: []v1alpha1.StepStatus{Unknown, Unknown}, phase: Installing,
			message: "retrying execution due to error: api-server resource not found installing Thing x: GroupVersionKind other.com/v1, Kind=Thing not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."},
		"the account default is not created": {steps: []*v1alpha1.Step{Step("", "", "v1", "ServiceAccount", "default", `{"metadata":{"name":"default","labels":{"a":"b"}}}`)},
			observed: []olmcore.Object{&corev1.ServiceAccount{ObjectMeta: Meta("default")}}, actions: []string{status}, statuses: []v1alpha1.StepStatus{Present}, phase: Complete},
		"the account default does not exist yet": {steps: []*v1alpha1.Step{Step("", "", "v1", "ServiceAccount", "default", `{"metadata":{"name":"default"}}`)},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{Unknown}, message: "waiting for ServiceAccount default", phase: Installing},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(Installing, c.steps, Started(time.Second))
			if c.change != nil {
				c.change(p)
			}
			in := input(p, with(c.observed...))
			if c.in != nil {
				c.in(&in)
			}
			r := reconcile(t, in)
			got := statusOf(in, r)
			require.Equal(t, c.actions, Describe(r))
			require.Subset(t, Reasons(r), c.reasons)
			require.Equal(t, c.statuses, Statuses(got))
			require.Equal(t, c.message, got.Message)
			require.Equal(t, c.phase, got.Phase)
			for _, a := range r.Actions {
				if made, ok := a.(olmcore.Create); ok && made.Target.Kind == "ClusterRole" {
					require.Empty(t, made.Object.GetNamespace())
				}
			}
		})
	}
}

// TestStepWaitsForTheDefinitionOfItsKind checks that a step whose kind another step defines waits until that step is
// done.
func TestStepWaitsForTheDefinitionOfItsKind(t *testing.T) {
	crd := CRDObject("v1")
	crd.Name, crd.Spec.Group = "consolelinks.example.com", "example.com"
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "ConsoleLink", Plural: "consolelinks"}
	link := Step("", "example.com", "v1", "ConsoleLink", "l", `{"apiVersion":"example.com/v1","kind":"ConsoleLink","metadata":{"name":"l"}}`)
	define := Step("", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", crd.Name, crd)
	in := input(Plan(Installing, []*v1alpha1.Step{link, define}, Started(time.Second)))
	require.Equal(t, []string{status, "create CustomResourceDefinition consolelinks.example.com (StepAbsent)"}, Describe(reconcile(t, in)))
	in = input(Plan(Installing, []*v1alpha1.Step{link, WithStatus(Created, define)}, Started(time.Second)), with(Installed(crd, true)))
	require.Equal(t, []string{status, "create ConsoleLink ops/l (StepAbsent)"}, Describe(reconcile(t, in)))
}

// TestGeneratedSubscriptionIsCreatedBeforeTheVersion checks that the Subscription of a dependency is created before the
// version that needs it. Otherwise a Subscription could be AtLatestKnown without its dependencies.
func TestGeneratedSubscriptionIsCreatedBeforeTheVersion(t *testing.T) {
	sub := Step("a.v1", "operators.coreos.com", "v1alpha1", "Subscription", "dep", `{"metadata":{"name":"dep"},"spec":{"name":"dep"}}`)
	r := reconcile(t, input(Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1"), sub}, Started(time.Second))))
	require.Equal(t, []string{status, "create ClusterServiceVersion ops/a.v1 (StepAbsent)", "create Subscription ops/dep (StepAbsent)"}, Describe(r))
	require.Equal(t, "install-x", r.Actions[2].(olmcore.Create).Object.GetAnnotations()[installplan.AnnotationGeneratedBy])
}

// TestPlansAreExecuted executes the steps of OLM's tests on existing objects, and compares whole objects. It includes
// OLM's cases.
func TestPlansAreExecuted(t *testing.T) {
	const (
		service    = `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, ports: [{port: 80}]}}`
		account    = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}}`
		autoscaler = `{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: vpa}, spec: {targetRef: {kind: Deployment, name: d}}}`
		crd        = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: verticalpodautoscalers.autoscaling.k8s.io},
			spec: {group: autoscaling.k8s.io, scope: Namespaced, names: {kind: VerticalPodAutoscaler, plural: verticalpodautoscalers},
			versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	)
	withTokens := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "x", Labels: map[string]string{"olm.managed": "true"}},
		Secrets: []corev1.ObjectReference{{Name: "token"}}}
	for name, c := range map[string]struct {
		existing []olmcore.Object
		steps    []*v1alpha1.Step
		want     []string
	}{
		"a version alone": {steps: []*v1alpha1.Step{written(t, "a.v1", versionText)}},
		"a Service, then its version": {
			steps: []*v1alpha1.Step{written(t, "a.v1", service), written(t, "a.v1", versionText)},
			want: []string{
				`{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {namespace: ops, name: a.v1, labels: {olm.managed: "true"}, finalizers: [operators.coreos.com/csv-cleanup]},
					spec: {displayName: Cool, install: {strategy: deployment, spec: {deployments: null}}, apiservicedefinitions: {}, cleanup: {enabled: false}, customresourcedefinitions: {}, provider: {}, version: 0.0.0}}`,
				`{apiVersion: v1, kind: Service, metadata: {namespace: ops, name: s, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]},
					spec: {type: ClusterIP, clusterIP: None, clusterIPs: [None], internalTrafficPolicy: Cluster, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80, protocol: TCP, targetPort: 80}], sessionAffinity: None}}`,
			},
		},
		"an account, a ConfigMap and a Secret": {
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", account),
				written(t, "a.v1", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}`),
				written(t, "a.v1", `{apiVersion: v1, kind: Secret, metadata: {name: b}, type: Opaque, data: {a: Yg==}}`)},
			want: []string{
				`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: ops, name: x, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}}`,
				`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ops, name: c, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, data: {a: b}}`,
				`{apiVersion: v1, kind: Secret, metadata: {namespace: ops, name: b, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, type: Opaque, data: {a: Yg==}}`,
			},
		},
		"an account twice": {existing: []olmcore.Object{withTokens},
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", account), written(t, "a.v1", account)},
			want:  []string{`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: ops, name: x, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, secrets: [{name: token}]}`},
		},
		"an account twice, with other fields": {existing: []olmcore.Object{withTokens},
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", account),
				written(t, "a.v1", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: x, annotations: {second: "yes"}}, automountServiceAccountToken: false}`)},
			want: []string{`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: ops, name: x, annotations: {second: "yes"}, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]},
				automountServiceAccountToken: false, secrets: [{name: token}]}`},
		},
		"a PrometheusRule": {existing: monitoring(),
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", `{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: r}}`)},
			want:  []string{`{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {namespace: ops, name: r, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}}`},
		},
		"budgets, priorities, autoscalers and policies": {
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", crd), written(t, "a.v1", autoscaler),
				written(t, "a.v1", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: pdb}, spec: {minAvailable: 1}}`),
				written(t, "a.v1", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p}, value: 7}`),
				written(t, "a.v1", `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: np}, spec: {podSelector: {}, policyTypes: [Ingress]}}`)},
			want: []string{
				`{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {namespace: ops, name: vpa, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, spec: {targetRef: {kind: Deployment, name: d}}}`,
				`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: ops, name: pdb, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, spec: {minAvailable: 1}}`,
				`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p, labels: {olm.managed: "true", olm.owner: a.v1, olm.owner.kind: ClusterServiceVersion, olm.owner.namespace: ops, olm.owner.uid: some}}, value: 7}`,
				`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: ops, name: np, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, spec: {podSelector: {}, policyTypes: [Ingress]}}`,
			},
		},
		"a Service that has an address": {
			existing: []olmcore.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "s", Labels: map[string]string{"olm.managed": "true"}},
				Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.9", Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 8080}}}}},
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: ClusterIP, ports: [{port: 80}]}}`)},
			want: []string{`{apiVersion: v1, kind: Service, metadata: {namespace: ops, name: s, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]},
				spec: {type: ClusterIP, clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9], internalTrafficPolicy: Cluster, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80, protocol: TCP, targetPort: 80}], sessionAffinity: None}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := World(t, c.existing...)
			p := executed(t, cluster, "install-x", c.steps...)
			require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
			var want, got strings.Builder
			for _, text := range c.want {
				expected := parsed(t, text)
				want.WriteString(Normal(t, text) + "---\n")
				for _, o := range cluster.Objects() {
					if olmcore.KeyOf(o) == olmcore.KeyOf(expected) {
						got.WriteString(Normal(t, Shown(t, cluster, o)) + "---\n")
					}
				}
			}
			if diff := cmp.Diff(want.String(), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSupportedKinds checks the kinds that are supported in addition to those with a row in kinds.Known, for any group.
// It includes OLM's cases.
func TestSupportedKinds(t *testing.T) {
	supported := map[string]bool{
		"PrometheusRule": true, "ServiceMonitor": true, "PodDisruptionBudget": true, "PriorityClass": true, "VerticalPodAutoscaler": true,
		"ConsoleYAMLSample": true, "ConsoleQuickStart": true, "ConsoleCLIDownload": true, "ConsoleLink": true, "ConsolePlugin": true, "NetworkPolicy": true,
		"Deployment": false, "Pod": false, "Job": false, "Namespace": false, "Ingress": false, "CatalogSource": false, "OperatorGroup": false,
		"MutatingWebhookConfiguration": false, "Thing": false, "prometheusrule": false,
	}
	for kind, want := range supported {
		t.Run(kind, func(t *testing.T) {
			crd := CRDObject("v1")
			crd.Name, crd.Spec.Names = "plural.example.com", apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: "plural"}
			in := input(Plan(Installing, []*v1alpha1.Step{Step("", "example.com", "v1", kind, "x", `{"apiVersion":"example.com/v1","kind":"`+kind+`","metadata":{"name":"x"}}`)},
				Started(time.Second)), with(Installed(crd, true)))
			r := reconcile(t, in)
			if want {
				require.Equal(t, []string{status, "create " + kind + " ops/x (StepAbsent)"}, Describe(r))
				return
			}
			require.Equal(t, []string{status}, Describe(r))
			require.Equal(t, v1alpha1.StepStatusUnsupportedResource, statusOf(in, r).Plan[0].Status)
			require.Equal(t, "the InstallPlan contains invalid data: "+kind+" x is of a kind that bundles may not contain", statusOf(in, r).Message)
		})
	}
}

// TestNewObjectsHaveComponentLabels checks that the labels are part of the first write.
func TestNewObjectsHaveComponentLabels(t *testing.T) {
	const a, b = olmcore.ComponentLabelPrefix + "a." + NS, olmcore.ComponentLabelPrefix + "b." + NS
	steps := []*v1alpha1.Step{
		CSVStep("a.v1"), CSVStep("b.v1"), CRDStep("a.v1", "v1"), RoleStep("a.v1", "r"),
		Step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "c", `{"metadata":{"name":"c"}}`),
		Step("b.v1", "", "v1", "ConfigMap", "new", `{"metadata":{"name":"new"}}`),
		Step("a.v1", "", "v1", "ConfigMap", "ours", `{"metadata":{"name":"ours"},"data":{"a":"1"}}`),
		Step("b.v1", "operators.coreos.com", "v1alpha1", "Subscription", "dep", `{"metadata":{"name":"dep"},"spec":{"name":"b","startingCSV":"b.v1"}}`),
		Step("", "", "v1", "ConfigMap", "of no version", `{"metadata":{"name":"of no version"}}`),
	}
	sub := Subscription("a", RefersTo("install-x"), func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "a.v1" })
	ours := managed(&corev1.ConfigMap{ObjectMeta: Meta("ours")})
	written := map[string]map[string]string{}
	for _, versions := range [][]olmcore.Object{nil, {CSV("a.v1"), CSV("b.v1")}} {
		in := input(Plan(Installing, steps, OwnedBy(sub), Started(time.Second)), with(sub, ours), with(versions...))
		for _, action := range reconcile(t, in).Actions {
			_, target, _ := action.Describe()
			labels := map[string]string{}
			for key := range objectOf(action).GetLabels() {
				if key == a || key == b {
					labels[key] = ""
				}
			}
			written[target.Kind+" "+target.Name] = labels
		}
	}
	delete(written, "InstallPlan install-x")
	of := func(keys ...string) map[string]string {
		labels := map[string]string{}
		for _, key := range keys {
			labels[key] = ""
		}
		return labels
	}
	Same(t, map[string]map[string]string{
		"ClusterServiceVersion a.v1": of(a), "ClusterServiceVersion b.v1": of(b), "Subscription dep": of(b),
		"CustomResourceDefinition things.example.com": of(a), "Role r": of(a), "ClusterRole c": of(a),
		"ConfigMap new": of(b), "ConfigMap ours": of(), "ConfigMap of no version": of(),
	}, written)

	// The labels do not count as content: an object without one is not updated.
	done := applied(t, RoleStep("a.v1", "r"), CSV("a.v1"))
	require.NotContains(t, done.GetLabels(), a)
	in := input(Plan(Installing, []*v1alpha1.Step{RoleStep("a.v1", "r")}, OwnedBy(sub), Started(time.Second)), with(sub, CSV("a.v1"), done))
	require.Equal(t, Complete, statusOf(in, reconcile(t, in)).Phase)
}
