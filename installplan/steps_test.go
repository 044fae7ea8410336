// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

const status = "updateStatus InstallPlan ops/install-x (PlanProgressed)"

// applied returns the object that a plan of this one step would have made.
func applied(t *testing.T, s *v1alpha1.Step, others ...olmcore.Object) olmcore.Object {
	t.Helper()
	s = s.DeepCopy()
	s.Status = unknown
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(others...))
	for _, a := range reconcile(t, in).Actions {
		if c, ok := a.(olmcore.Create); ok {
			o := c.Object.DeepCopyObject().(olmcore.Object)
			o.SetUID("uid-made")
			o.SetResourceVersion("1")
			o.SetCreationTimestamp(born)
			if crd, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
				crd.Status = installed(crdObject("v1"), true).Status
			}
			return o
		}
	}
	t.Fatal("nothing was made")
	return nil
}

// TestStepStatus has each row of the table of what is recorded, observed, and
// asked for.
func TestStepStatus(t *testing.T) {
	live := csv("a.v1")
	role := roleStep("a.v1", "r")
	made := applied(t, role, live)
	edited := made.DeepCopyObject().(*rbacv1.Role)
	edited.Annotations = nil
	edited.Rules = nil
	leaving := made.DeepCopyObject().(olmcore.Object)
	leaving.SetDeletionTimestamp(ago(time.Second))
	crd := crdStep("a.v1", "v1")
	up := applied(t, crd, live)
	old := up.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
	old.Annotations = nil
	other(old, 0)
	down := up.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
	down.Status.Conditions = nil
	down.CreationTimestamp = metav1.NewTime(noon)

	for name, c := range map[string]struct {
		step     *v1alpha1.Step
		recorded v1alpha1.StepStatus
		observed []olmcore.Object
		want     v1alpha1.StepStatus
		actions  []string
		phase    v1alpha1.InstallPlanPhase
	}{
		"unknown and absent: asked for":         {role, unknown, nil, notPresent, []string{status, "create Role ops/r (StepAbsent)"}, installing},
		"asked for and absent: asked again":     {role, notPresent, nil, notPresent, []string{"create Role ops/r (StepAbsent)"}, installing},
		"asked for and there: created":          {role, notPresent, []olmcore.Object{made}, created, []string{status}, complete},
		"unknown and there: present":            {role, unknown, []olmcore.Object{made}, present, []string{status}, complete},
		"unknown and different: updated":        {role, unknown, []olmcore.Object{edited}, unknown, []string{"update Role ops/r (StepDiffers)"}, installing},
		"asked for and different: updated":      {role, notPresent, []olmcore.Object{edited}, unknown, []string{status, "update Role ops/r (StepDiffers)"}, installing},
		"unknown and deleted: waited for":       {role, unknown, []olmcore.Object{leaving}, unknown, []string{status}, installing},
		"created and there: not compared":       {role, created, []olmcore.Object{edited}, created, []string{status}, complete},
		"created and gone: asked for again":     {role, created, nil, notPresent, []string{status, "create Role ops/r (StepAbsent)"}, installing},
		"present and deleted: waited for":       {role, present, []olmcore.Object{leaving}, present, []string{status}, installing},
		"a role does not wait for an API":       {role, waitingAPI, []olmcore.Object{made}, present, []string{status}, complete},
		"a CRD that is served: present":         {crd, unknown, []olmcore.Object{up}, present, []string{status}, complete},
		"a CRD that was asked for: created":     {crd, notPresent, []olmcore.Object{up}, created, []string{status}, complete},
		"a CRD that is not served: waited for":  {crd, notPresent, []olmcore.Object{down}, waitingAPI, []string{status}, installing},
		"a CRD that becomes served: created":    {crd, waitingAPI, []olmcore.Object{up}, created, []string{status}, complete},
		"a CRD that is still not served: waits": {crd, waitingAPI, []olmcore.Object{down}, waitingAPI, []string{status}, installing},
		"a CRD that waits and differs: updated": {crd, waitingAPI, []olmcore.Object{old}, waitingAPI, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, installing},
		"a CRD that went away: asked for again": {crd, waitingAPI, nil, notPresent, []string{status, "create CustomResourceDefinition things.example.com (StepAbsent)"}, installing},
	} {
		t.Run(name, func(t *testing.T) {
			s := withStatus(c.recorded, c.step.DeepCopy())
			in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(live), with(c.observed...))
			r := reconcile(t, in)
			same(t, c.actions, describe(r))
			got := statusOf(in, r)
			require.Equal(t, c.want, got.Plan[0].Status)
			require.Equal(t, c.phase, got.Phase)
		})
	}
}

// TestRefusals has each reason to apply nothing at all; the other step of the
// plan, which could be applied, is held back in every case.
func TestRefusals(t *testing.T) {
	generic := func(kind, apiVersion string) *v1alpha1.Step {
		gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
		return step("", gvk.Group, gvk.Version, kind, "x", `{"apiVersion":"`+apiVersion+`","kind":"`+kind+`","metadata":{"name":"x"}}`)
	}
	stranger := csv("other.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "things.example.com"}}
	})
	owner := step("a.v1", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "a.v1",
		`{"metadata":{"name":"a.v1"},"spec":{"customresourcedefinitions":{"owned":[{"name":"things.example.com"}]}}}`)
	unnamed := func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = nil }
	served := installed(crdObject("v0", "v1"), true)
	served.Status.StoredVersions = []string{"v0", "v1"}
	clusterScoped := crdStep("", "v1")
	const invalidData = "the InstallPlan contains invalid data"

	for name, c := range map[string]struct {
		step     *v1alpha1.Step
		observed []olmcore.Object
		change   func(*v1alpha1.InstallPlan)
		in       func(*installplan.Input)
		want     string
		final    bool
	}{
		"R1: no step":                 {step: nil, want: invalidData, final: true},
		"R1: no kind":                 {step: step("", "", "v1", "", "x", `{}`), want: invalidData, final: true},
		"R1: no name":                 {step: step("", "", "v1", "Role", "", `{}`), want: invalidData, final: true},
		"R2: a status that is none":   {step: withStatus("Odd", roleStep("", "r")), want: invalidData, final: true},
		"R2: an unsupported resource": {step: withStatus("UnsupportedResource", roleStep("", "r")), want: invalidData, final: true},
		"R3: a bundle that was not unpacked": {
			step: step("", "", "v1", "Service", "x", `{"kind":"ConfigMap","name":"h","namespace":"olm","catalogSourceName":"c","catalogSourceNamespace":"olm","replaces":"","properties":"{}"}`),
			want: "error finding unpacked bundle configmap for ref {ConfigMap h olm c olm  {}}: configmaps \"h\" not found",
		},
		"R8: a reference that lacks a field": {step: step("", "", "v1", "Service", "x", `{"kind":"ConfigMap","name":"h","namespace":"olm","catalogSourceName":"c"}`), final: true,
			want: "error parsing step manifest: x: it has no metadata"},
		"R8: a reference in a step of a generic kind": {step: step("", "policy", "v1", "PodDisruptionBudget", "x", `{"kind":"ConfigMap","name":"h","namespace":"olm","catalogSourceName":"c"}`), final: true,
			want: "error decoding x object to an unstructured object: it has no metadata"},
		"R8: no JSON": {step: step("", "", "v1", "Role", "x", `{"metadata":`), final: true,
			want: "error parsing step manifest: x: unexpected end of JSON input"},
		"R8: another kind": {step: step("", "", "v1", "Role", "x", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"}}`), final: true,
			want: "error parsing step manifest: x: kind is Service"},
		"R8: a broken CRD": {step: step("", "", "v1", "CustomResourceDefinition", "x", `[]`), final: true,
			want: "v1 crd unmarshaling failed: json: cannot unmarshal array into Go value of type map[string]interface {}"},
		"R9: a CRD version that never was": {step: step("", "", "v1", "CustomResourceDefinition", "x", `{"apiVersion":"apiextensions.k8s.io/v7","kind":"CustomResourceDefinition","metadata":{"name":"x"}}`),
			want: "CRD APIVersion from manifest not supported: apiextensions.k8s.io/v7", final: true},
		"R10: a CRD version that is gone": {step: step("", "", "v1", "CustomResourceDefinition", "x", `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"x"}}`),
			want: "api-server resource not found installing CustomResourceDefinition x: GroupVersionKind apiextensions.k8s.io/v1beta1, Kind=CustomResourceDefinition not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."},
		"R11: a kind that is not supported": {step: generic("Gizmo", "example.com/v1"), want: invalidData, final: true},
		"R12: a version that is not served": {step: generic("ServiceMonitor", "monitoring.coreos.com/v1"),
			want: "api-server resource not found installing ServiceMonitor x: GroupVersionKind monitoring.coreos.com/v1, Kind=ServiceMonitor not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."},
		"R13: a kind that its version does not have": {step: generic("ServiceMonitor", "policy/v1"),
			want: "Unable to find GVK in discovery: policy v1 ServiceMonitor"},
		"R14: another owner of a CRD": {step: owner, observed: []olmcore.Object{stranger}, change: unnamed,
			want: "pre-existing CRD owners found for owned CRD(s) of dependent CSV a.v1"},
		"R15: several owners of a CRD": {step: owner, change: unnamed,
			observed: []olmcore.Object{stranger, csv("more.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Spec = stranger.Spec })},
			want:     "error checking crd owners for: a.v1: Existing CSVs [more.v1 other.v1] in namespace ops all claim to own CRD things.example.com"},
		"R16: a copy has the name": {step: csvStep("a.v1"),
			observed: []olmcore.Object{csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "there"} })},
			want:     "a copy of ClusterServiceVersion a.v1 from namespace there exists here"},
		"R17: a stored version would be lost": {step: crdStep("", "v1"), observed: []olmcore.Object{served},
			want: `risk of data loss updating "things.example.com": new CRD removes version v0 that is listed as a stored version on the existing CRD`},
		"R17: no versions": {step: crdStep(""), want: "could not find any versions in the new CRD"},
		"R17: the kind cannot change": {step: step("", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", func() any {
			crd := crdObject("v1")
			crd.Spec.Names.Kind = "Object"
			return crd
		}()), observed: []olmcore.Object{installed(crdObject("v1"), true)},
			want: "CustomResourceDefinition things.example.com: spec.names.kind is immutable"},
		"R17: the scope cannot change": {step: clusterScoped,
			observed: []olmcore.Object{func() olmcore.Object {
				crd := installed(crdObject("v0"), true)
				crd.Spec.Scope = apiextensionsv1.ClusterScoped
				return crd
			}()},
			want: "CustomResourceDefinition things.example.com: spec.scope is immutable"},
		"R17: a resource would become invalid": {step: crdStep("", "v1"), observed: []olmcore.Object{func() olmcore.Object {
			crd := installed(crdObject("v1"), true)
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "older"
			return crd
		}()},
			in: func(in *installplan.Input) {
				in.CustomResources = olmcore.Found(installplan.ResourceVerdict{CustomResourceDefinition: "things.example.com", Version: "v1", Namespace: "n", Name: "t", New: []string{"too big"}})
			},
			want: `error validating existing CRs against new CRD's schema for "things.example.com": error validating example.com/v1, Kind=Thing "n/t": updated validation is too restrictive: too big`},
		"R18: the pull Secret is not there": {step: step("", "", "v1", "Secret", "pull", ``),
			want: `secret pull does not exist - secrets "pull" not found`},
		"R19: a label that is none": {step: step("a/b", "rbac.authorization.k8s.io", "v1", "ClusterRole", "x", `{"metadata":{"name":"x"}}`), final: true,
			want: `ClusterRole x: label olm.owner="a/b" is not valid`},
		"an object without a name": {step: step("", "", "v1", "Service", "x-", `{"metadata":{"generateName":"x-"}}`),
			want: "object of step x- has no name"},
		"an owner that has no UID yet": {step: roleStep("gone.v1", "r"), observed: []olmcore.Object{csv("gone.v1", func(c *v1alpha1.ClusterServiceVersion) { c.UID = "" })},
			want: `error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "gone.v1" not found`},
		"an owner that is nowhere": {step: roleStep("gone.v1", "r"),
			want: `error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "gone.v1" not found`},
		"a binding of somebody else to another role": {
			step: step("", "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "x", `{"metadata":{"name":"x"},"roleRef":{"kind":"ClusterRole","name":"new"}}`),
			observed: []olmcore.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: clusterMeta("x"),
				RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "old"}}},
			want: "ClusterRoleBinding x exists and its roleRef is immutable"},
		"an account that is gone": {step: roleStep("", "r"), want: `serviceaccounts "scoped" not found`,
			change: func(p *v1alpha1.InstallPlan) {
				p.Status.AttenuatedServiceAccountRef = &corev1.ObjectReference{Namespace: ns, Name: "scoped"}
			},
			in: func(in *installplan.Input) {
				in.OperatorGroups.Items[0].Spec.ServiceAccountName = "scoped"
				in.OperatorGroups.Items[0].Status.ServiceAccountRef = &corev1.ObjectReference{Namespace: ns, Name: "scoped"}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(installing, []*v1alpha1.Step{c.step, crdStepNamed("others.example.com")}, started(time.Second))
			if c.change != nil {
				c.change(p)
			}
			in := input(p, with(c.observed...))
			if c.in != nil {
				c.in(&in)
			}
			r := reconcile(t, in)
			same(t, []string{status}, describe(r))
			got := statusOf(in, r)
			require.Equal(t, unknown, got.Plan[len(got.Plan)-1].Status, "the other object was not asked for")
			if c.final {
				require.Equal(t, c.want, got.Message)
				require.Equal(t, failed, got.Phase)
				return
			}
			require.Equal(t, "retrying execution due to error: "+c.want, got.Message)
			require.Equal(t, installing, got.Phase)
			require.Contains(t, r.Diagnostics, diagnostic(p, olmcore.Warning, installplan.ReasonStepRefused, "status.plan[0]", c.want))

			// Before approval the same is said, and nothing is written.
			p.Status.Phase, p.Spec.Approval, p.Spec.Approved = requiresApproval, v1alpha1.ApprovalManual, false
			r = reconcile(t, in)
			require.Empty(t, r.Actions)
			require.Contains(t, r.Diagnostics, diagnostic(p, olmcore.Warning, installplan.ReasonStepRefused, "status.plan[0]", c.want))
		})
	}
}

func crdStepNamed(name string) *v1alpha1.Step {
	crd := crdObject("v1")
	crd.Name, crd.Spec.Names.Kind = name, "Other"
	return step("", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", name, crd)
}

// TestAnOptionalStepWithoutItsAPIIsLeftOut: the plan completes without it.
func TestAnOptionalStepWithoutItsAPIIsLeftOut(t *testing.T) {
	s := step("", "monitoring.coreos.com", "v1", "ServiceMonitor", "m", `{"apiVersion":"monitoring.coreos.com/v1","kind":"ServiceMonitor","metadata":{"name":"m"}}`)
	s.Optional = true
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)))
	r := reconcile(t, in)
	require.Equal(t, complete, statusOf(in, r).Phase)
	require.Equal(t, []v1alpha1.StepStatus{v1alpha1.StepStatusNotCreated}, statuses(statusOf(in, r)))
	require.Equal(t, []string{installplan.ReasonOptionalStepSkipped}, reasons(r))
}

// TestAKindOfThePlanIsWaitedFor: a step whose kind another step defines is no
// error before that is done.
func TestAKindOfThePlanIsWaitedFor(t *testing.T) {
	crd := crdObject("v1")
	crd.Name, crd.Spec.Group = "consolelinks.example.com", "example.com"
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "ConsoleLink", Plural: "consolelinks"}
	link := step("", "example.com", "v1", "ConsoleLink", "l", `{"apiVersion":"example.com/v1","kind":"ConsoleLink","metadata":{"name":"l"}}`)
	define := step("", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", crd.Name, crd)
	in := input(plan(installing, []*v1alpha1.Step{link, define}, started(time.Second)))
	require.Equal(t, []string{status, "create CustomResourceDefinition consolelinks.example.com (StepAbsent)"}, describe(reconcile(t, in)))
	in = input(plan(installing, []*v1alpha1.Step{link, withStatus(created, define)}, started(time.Second)), with(installed(crd, true)))
	require.Equal(t, []string{status, "create ConsoleLink ops/l (StepAbsent)"}, describe(reconcile(t, in)))
}

// TestASubscriptionOfADependencyComesWithTheFirstObjects: before the version that
// needs it is there, so that nothing is AtLatestKnown without its dependencies.
func TestASubscriptionOfADependencyComesWithTheFirstObjects(t *testing.T) {
	sub := step("a.v1", "operators.coreos.com", "v1alpha1", "Subscription", "dep", `{"metadata":{"name":"dep"},"spec":{"name":"dep"}}`)
	r := reconcile(t, input(plan(installing, []*v1alpha1.Step{csvStep("a.v1"), sub}, started(time.Second))))
	require.Equal(t, []string{status, "create ClusterServiceVersion ops/a.v1 (StepAbsent)", "create Subscription ops/dep (StepAbsent)"}, describe(r))
	require.Equal(t, "install-x", r.Actions[2].(olmcore.Create).Object.GetAnnotations()[installplan.AnnotationGeneratedBy])
}

// TestStepsRunAsTheGroupsAccount: all but CustomResourceDefinitions, which are
// shared by the whole cluster.
//
// OLM's case: an account without rights: definitions yes, the rest once it may.
func TestStepsRunAsTheGroupsAccount(t *testing.T) {
	account := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: ns, Name: "scoped"}
	in := input(plan(installing, []*v1alpha1.Step{csvStep("a.v1"), crdStep("a.v1", "v1")}, started(time.Second), func(p *v1alpha1.InstallPlan) {
		p.Status.AttenuatedServiceAccountRef = account
	}))
	in.OperatorGroups.Items[0].Spec.ServiceAccountName = "scoped"
	in.OperatorGroups.Items[0].Status.ServiceAccountRef = account
	in.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: meta("scoped")}
	require.Equal(t, []string{
		status,
		"create ClusterServiceVersion ops/a.v1 (StepAbsent) as scoped",
		"create CustomResourceDefinition things.example.com (StepAbsent)",
	}, describe(reconcile(t, in)))
}

// TestAPullSecretIsCopied from the namespace of OLM.
func TestAPullSecretIsCopied(t *testing.T) {
	in := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "Secret", "pull", "")}, started(time.Second)))
	in.PullSecrets = olmcore.Found[*corev1.Secret](&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "pull", UID: "x", Annotations: map[string]string{"no": "no"}},
		Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte("{}")}})
	in.CatalogSources = olmcore.Found[*v1alpha1.CatalogSource](pullCatalog("pull"))
	r := reconcile(t, in)
	same(t, &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pull", Labels: map[string]string{"olm.managed": "true"}},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte("{}")},
	}, r.Actions[1].(olmcore.Create).Object.(*corev1.Secret))
}

// TestManifestsDecodeInAnyCase: as encoding/json reads them, and so OLM.
func TestManifestsDecodeInAnyCase(t *testing.T) {
	manifest := `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},"spec":{"MinKubeVersion":"1.30.0",
		"install":{"strategy":"deployment","spec":{"permissions":[{"serviceaccountname":"x","rules":[]}]}}}}`
	in := input(plan(installing, []*v1alpha1.Step{step("a.v1", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "a.v1", manifest)}, started(time.Second)))
	result := reconcile(t, in)
	require.Equal(t, []string{installplan.ReasonKeyCase, installplan.ReasonKeyCase}, reasons(result))
	var made *v1alpha1.ClusterServiceVersion
	for _, a := range result.Actions {
		if c, ok := a.(olmcore.Create); ok {
			made = c.Object.(*v1alpha1.ClusterServiceVersion)
		}
	}
	require.Equal(t, "1.30.0", made.Spec.MinKubeVersion)
	require.Equal(t, "x", made.Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName)

	role := step("a.v1", "rbac.authorization.k8s.io", "v1", "Role", "r", `{"metadata":{"name":"r"},"Rules":[{"Verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`)
	require.Equal(t, []string{"get"}, applied(t, role, csv("a.v1")).(*rbacv1.Role).Rules[0].Verbs)
}
