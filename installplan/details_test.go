// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestEveryWriteRunsAsTheGroupsAccount: not only what is created.
//
// OLM's case: an account without rights: definitions yes, the rest once it may.
func TestEveryWriteRunsAsTheGroupsAccount(t *testing.T) {
	bound, scope := scopedTo(&corev1.ObjectReference{Kind: "ServiceAccount", Namespace: ns, Name: "scoped"})
	binding := step("", "rbac.authorization.k8s.io", "v1", "RoleBinding", "x", `{"metadata":{"name":"x"},"roleRef":{"kind":"Role","name":"new"}}`)
	for want, c := range map[string]struct {
		step *v1alpha1.Step
		have olmcore.Object
	}{
		"create Role ops/r (StepAbsent) as scoped":                         {roleStep("", "r"), nil},
		"update Role ops/r (StepDiffers) as scoped":                        {roleStep("", "r"), managed(&rbacv1.Role{ObjectMeta: meta("r")})},
		"delete RoleBinding ops/x (StepImmutable) as scoped":               {binding, managed(&rbacv1.RoleBinding{ObjectMeta: meta("x"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "old"}})},
		"create Secret ops/pull (StepAbsent) as scoped":                    {step("", "", "v1", "Secret", "pull", ""), nil},
		"update CustomResourceDefinition things.example.com (StepDiffers)": {crdStep("", "v1", "v2"), installed(crdObject("v1"), true)},
	} {
		in := input(plan(installing, []*v1alpha1.Step{c.step}, started(time.Second), bound), scope)
		in.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: meta("scoped")}
		in.PullSecrets = olmcore.Found[*corev1.Secret](&corev1.Secret{ObjectMeta: meta("pull")}, &corev1.Secret{ObjectMeta: inOLM("pull"), Type: corev1.SecretTypeDockerConfigJson})
		in.CatalogSources = olmcore.Found[*v1alpha1.CatalogSource](pullCatalog("pull"))
		if c.have != nil {
			with(c.have)(&in)
		}
		got := describe(reconcile(t, in))
		require.Equal(t, want, got[len(got)-1])
	}
}

// TestAPullSecretOfAnotherNamespaceIsNotCopied, whatever its name.
func TestAPullSecretOfAnotherNamespaceIsNotCopied(t *testing.T) {
	in := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "Secret", "pull", "")}, started(time.Second)))
	in.PullSecrets = olmcore.Found[*corev1.Secret](&corev1.Secret{ObjectMeta: meta("pull")})
	require.Equal(t, `retrying execution due to error: secret pull does not exist - secrets "pull" not found`, statusOf(in, reconcile(t, in)).Message)
}

// TestWhatIsTakenOverAsItIs: an object that has all that the step wants is not
// written for the mark alone, and one that belongs to an earlier incarnation of
// its version is.
func TestWhatIsTakenOverAsItIs(t *testing.T) {
	s := step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "x", `{"metadata":{"name":"x"},"rules":[{"verbs":["get"]}]}`)
	made := applied(t, s, csv("a.v1"))
	again := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)),
		with(csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.UID = "reborn" }), made))
	require.Equal(t, []string{"update ClusterRole x (StepDiffers)"}, describe(reconcile(t, again)))

	unmarked := made.DeepCopyObject().(olmcore.Object)
	unmarked.SetAnnotations(nil)
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1"), unmarked))
	require.Equal(t, []string{status}, describe(reconcile(t, in)))
}

// TestOwnersAreNoContent: the mark of an object does not count them.
func TestOwnersAreNoContent(t *testing.T) {
	bare := step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"}}`)
	owned := step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"1"}]}}`)
	require.Equal(t, applied(t, bare).GetAnnotations()[stepHash], applied(t, owned).GetAnnotations()[stepHash])
	require.Empty(t, applied(t, owned).GetOwnerReferences())
}

// TestTwoStepsOfOneObjectAddUp: owners and finalizers too.
func TestTwoStepsOfOneObjectAddUp(t *testing.T) {
	one := step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x","finalizers":["one"]}}`)
	two := step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x","finalizers":["two"],"ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"b.v1"}]}}`)
	in := input(plan(installing, []*v1alpha1.Step{one, two}, started(time.Second)), with(csv("b.v1")))
	o := reconcile(t, in).Actions[1].(olmcore.Create).Object
	require.Equal(t, []string{"one", "two"}, o.GetFinalizers())
	want := olmcore.OwnerReferenceTo(csv("b.v1"))
	want.Controller, want.BlockOwnerDeletion = nil, nil // as in the manifest
	same(t, []metav1.OwnerReference{want}, o.GetOwnerReferences())
}

// TestWhatAnUpdateReplaces: all content that the manifest leaves out or says is
// nothing, but for what the API server gave.
func TestWhatAnUpdateReplaces(t *testing.T) {
	role, _ := update(t, step("a.v1", "rbac.authorization.k8s.io", "v1", "Role", "x", `{"metadata":{"name":"x"},"rules":null}`),
		&rbacv1.Role{ObjectMeta: handedOver("x"), Rules: rules()})
	require.Empty(t, role.Rules, "null is nothing")

	secret, _ := update(t, step("a.v1", "", "v1", "BundleSecret", "x", `{"metadata":{"name":"x"},"data":{"a":"Mg=="}}`),
		&corev1.Secret{ObjectMeta: handedOver("x"), Type: corev1.SecretTypeTLS})
	require.Equal(t, corev1.SecretTypeTLS, secret.Type)

	have := &corev1.Service{ObjectMeta: handedOver("x"), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack), ClusterIP: "10.0.0.1",
		Ports: []corev1.ServicePort{{Name: "a", Port: 1, NodePort: 30001}, {Name: "b", Port: 2, NodePort: 30002}},
	}}
	have.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}
	service, _ := update(t, step("a.v1", "", "v1", "Service", "x",
		`{"metadata":{"name":"x"},"spec":{"type":"NodePort","ipFamilyPolicy":"PreferDualStack","ports":[{"name":"a","port":1},{"name":"b","port":2,"nodePort":30009},{"name":"c","port":3}]}}`), have)
	same(t, corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack), ClusterIP: "10.0.0.1",
		Ports: []corev1.ServicePort{{Name: "a", Port: 1, NodePort: 30001}, {Name: "b", Port: 2, NodePort: 30009}, {Name: "c", Port: 3}},
	}, service.Spec)
	same(t, have.Status, service.Status)

	inside, _ := update(t, step("a.v1", "", "v1", "Service", "x", `{"metadata":{"name":"x"},"spec":{"ports":[{"name":"a","port":1}]}}`), have)
	same(t, []corev1.ServicePort{{Name: "a", Port: 1}}, inside.Spec.Ports)
}

// TestWhatAVersionOfThePlanHoldsBack: what needs its UID, until it is observed.
func TestWhatAVersionOfThePlanHoldsBack(t *testing.T) {
	named := `{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"a.v1"}]}}`
	for name, s := range map[string]*v1alpha1.Step{
		"its own objects":           step("a.v1", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"}}`),
		"what carries its labels":   step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "x", `{"metadata":{"name":"x"}}`),
		"what names it as an owner": step("", "", "v1", "ServiceAccount", "x", named),
	} {
		in := input(plan(installing, []*v1alpha1.Step{csvStep("a.v1"), s}, started(time.Second)))
		r := reconcile(t, in)
		require.Equal(t, []string{status, "create ClusterServiceVersion ops/a.v1 (StepAbsent)"}, describe(r), name)
		require.Equal(t, []v1alpha1.StepStatus{notPresent, unknown}, statuses(statusOf(in, r)), name)

		with(csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.UID = "" }))(&in)
		r = reconcile(t, in)
		require.NotContains(t, reasons(r), installplan.ReasonStepRefused, name)
		require.Equal(t, []string{status}, describe(r), name)
	}
}

// TestWhoseObjectItIs: OLM's, when it is labelled or owned so.
func TestWhoseObjectItIs(t *testing.T) {
	for name, c := range map[string]struct {
		meta    func(*corev1.ConfigMap)
		managed bool
	}{
		"nobody's":             {func(*corev1.ConfigMap) {}, false},
		"labelled as not ours": {func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"olm.managed": "false"} }, false},
		"labelled":             {func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"olm.managed": "true"} }, true},
		"with an owner label":  {func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"olm.owner": "x"} }, true},
		"owned by a version": {func(cm *corev1.ConfigMap) {
			cm.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(csv("b.v1"))}
		}, true},
		"owned by a Node": {func(cm *corev1.ConfigMap) {
			cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n"}}
		}, false},
	} {
		have := &corev1.ConfigMap{ObjectMeta: meta("x")}
		c.meta(have)
		s := step("a.v1", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"},"data":{"a":"1"}}`)
		if !c.managed {
			in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1"), have))
			require.Equal(t, []string{installplan.ReasonStepRefused}, reasons(reconcile(t, in)), name)
			continue
		}
		got, _ := update(t, s, have)
		require.True(t, olmcore.OwnedBy(got, "uid-a.v1"), name)
		require.Equal(t, "true", got.Labels["olm.managed"], name)
	}
}

// TestNewPermissionsStartAScopedPlanOnly.
func TestNewPermissionsStartAScopedPlanOnly(t *testing.T) {
	in := input(plan(failed, []*v1alpha1.Step{roleStep("", "r")}, func(p *v1alpha1.InstallPlan) { p.Status.Message = "error creating role r: no" }))
	in.RBACChanged = true
	same(t, olmcore.Result{}, reconcile(t, in))
}

// TestWhatWasWaitedForIsSaidNoMore, whatever it was.
func TestWhatWasWaitedForIsSaidNoMore(t *testing.T) {
	for message, want := range map[string]string{
		"waiting for ClusterServiceVersion a.v1 to finish deleting": "",
		"bundle a.v1 is not unpacked":                               "",
		"retrying execution due to error: no":                       "",
		"written by somebody else":                                  "written by somebody else",
	} {
		in := input(plan(installing, []*v1alpha1.Step{roleStep("", "r")}, started(time.Second), func(p *v1alpha1.InstallPlan) { p.Status.Message = message }))
		in.LastRun = ran("r")
		require.Equal(t, want, statusOf(in, reconcile(t, in)).Message)
	}
}

// ran is the memory of a Role that was written.
func ran(name string) olmcore.LastResults {
	return olmcore.LastResults{{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: ns, Name: name}: {Count: 1}}
}

// TestANewProcessTakesNoErrorBack: what another controller was refused may be
// refused again.
func TestANewProcessTakesNoErrorBack(t *testing.T) {
	const message = "retrying execution due to error: no"
	in := input(plan(installing, []*v1alpha1.Step{roleStep("", "r")}, started(time.Second), func(p *v1alpha1.InstallPlan) { p.Status.Message = message }))
	require.Equal(t, message, statusOf(in, reconcile(t, in)).Message)
}

// TestLongMessagesAreCut between two characters.
func TestLongMessagesAreCut(t *testing.T) {
	for shift := range 4 {
		long := strings.Repeat("x", shift) + strings.Repeat("\u65e5", 5000) + "\xff"
		in := input(plan(installing, []*v1alpha1.Step{roleStep("", "r")}, started(time.Second)))
		in.LastRun = olmcore.LastResults{{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: ns, Name: "r"}: {Class: olmcore.Forbidden, Message: long, Count: 1}}
		got := statusOf(in, reconcile(t, in)).Message
		require.True(t, utf8.ValidString(got))
		require.True(t, strings.HasSuffix(got, "\u65e5 ..."), got[len(got)-10:])
		require.InDelta(t, 8<<10, len(got), 64)
	}
	in := input(plan(installing, []*v1alpha1.Step{roleStep("", "r")}, started(time.Second)))
	in.LastRun = olmcore.LastResults{{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: ns, Name: "r"}: {Class: olmcore.Forbidden, Message: "a\xffb", Count: 1}}
	require.Equal(t, "retrying execution due to error: error creating role r: a\uFFFDb", statusOf(in, reconcile(t, in)).Message)
	require.Equal(t, installplan.StateRetrying, assess(t, in).State)
}
