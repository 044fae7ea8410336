// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

const tenantsBundle = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

// precious is the definition of the victim's operator.
func precious() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}, ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", Plural: "things", ListKind: "ThingList", Singular: "thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}}},
		},
	}
}

func manifestOf(t *testing.T, o olmcore.Object) string {
	values, err := olmcore.ToMap(o)
	require.NoError(t, err)
	text, err := (&unstructured.Unstructured{Object: values}).MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

// tenantWorld is a cluster with the operator of a victim, objects of users, and a tenant in namespace evil, whose
// OperatorGroup prescribes an account that may do what it likes there and nothing elsewhere.
func tenantWorld(t *testing.T) (*fake.Cluster, *fake.Driver) {
	c := fake.NewCluster(noon)
	c.AutoCreateNamespaces = true
	c.Authorize = func(as *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
		if as == nil || as.Namespace == "evil" && as.Name == "weak" && target.Namespace == "evil" {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(target.Kind)}, target.Name, nil)
	}
	o := &olm.OLM{Options: controllers.Options{Sweeps: true}}
	d := &fake.Driver{Cluster: c, Controllers: o.Controllers()}
	require.NoError(t, c.Create(
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "weak"}},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "group"},
			Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"evil"}, ServiceAccountName: "weak"}},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "victim", Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"victim"}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "settings"}, Data: map[string]string{"users": "own"}},
		&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "victim", Name: "private"}, Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "there:1"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "certificate"}, Data: map[string][]byte{"tls.key": []byte("secret")}, Type: corev1.SecretTypeTLS},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "users"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}},
	))
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	tenantsPlan(t, c, "victim", "victims", versionStep(t, "victim"), definitionStep(t, precious()))
	require.NoError(t, d.RunFor(t.Context(), 5*time.Minute))
	require.Equal(t, v1alpha1.InstallPlanPhaseComplete, fake.Find[*v1alpha1.InstallPlan](c, "victim", "victims").Status.Phase)
	// A bundle of the victim is unpacked, and a plan of it waits for approval.
	source := fake.Find[*v1alpha1.CatalogSource](c, "victim", "private")
	require.NoError(t, c.Create(thingIn("victim"), thingIn("users"), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "victim", Name: tenantsBundle, Labels: map[string]string{"olm.managed": "true"},
			OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(source)}},
		Data: map[string]string{"csv.yaml": `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"private.v1"},"spec":{"install":{"strategy":"deployment"}}}`},
	}))
	tenantsPlan(t, c, "victim", "waiting", privateStep())
	require.NoError(t, fake.Edit(c, "victim", "waiting", func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false }))
	waiting := fake.Find[*v1alpha1.InstallPlan](c, "victim", "waiting").DeepCopy()
	waiting.Status.Phase = v1alpha1.InstallPlanPhaseRequiresApproval
	require.NoError(t, c.UpdateStatus(waiting))
	return c, d
}

// privateStep refers to the unpacked bundle of the victim.
func privateStep() *v1alpha1.Step {
	return tenantStep("private.v1", v1alpha1.GroupName, "v1alpha1", "ClusterServiceVersion", "private.v1",
		`{"kind":"ConfigMap","name":"`+tenantsBundle+`","namespace":"victim","catalogSourceName":"private","catalogSourceNamespace":"victim","replaces":"","properties":"{}"}`)
}

func thingIn(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"namespace": namespace, "name": "precious"}}}
}

func versionOf(namespace string) *v1alpha1.ClusterServiceVersion {
	v := &v1alpha1.ClusterServiceVersion{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: "ClusterServiceVersion"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "thing.v1"}}
	v.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	v.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: true}, {Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	v.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "things.example.com", Version: "v1", Kind: "Thing"}}
	v.Spec.Cleanup.Enabled = true
	return v
}

func tenantStep(resolving, group, version, kind, name, manifest string) *v1alpha1.Step {
	return &v1alpha1.Step{Resolving: resolving, Status: v1alpha1.StepStatusUnknown,
		Resource: v1alpha1.StepResource{Group: group, Version: version, Kind: kind, Name: name, Manifest: manifest}}
}

func versionStep(t *testing.T, namespace string) *v1alpha1.Step {
	return tenantStep("thing.v1", v1alpha1.GroupName, "v1alpha1", "ClusterServiceVersion", "thing.v1", manifestOf(t, versionOf(namespace)))
}

func definitionStep(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *v1alpha1.Step {
	return tenantStep("thing.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", crd.Name, manifestOf(t, crd))
}

// tenantsPlan writes a plan by hand, approved and with its steps in its status.
func tenantsPlan(t *testing.T, c *fake.Cluster, namespace, name string, steps ...*v1alpha1.Step) {
	p := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: []string{"thing.v1"}}}
	require.NoError(t, c.Create(p))
	p.Status = v1alpha1.InstallPlanStatus{Phase: v1alpha1.InstallPlanPhaseInstalling, CatalogSources: []string{}, Plan: steps}
	require.NoError(t, c.UpdateStatus(p))
}

// outside are all objects but those of the tenant's namespace and the roles of his groups, as JSON.
func outside(t *testing.T, c *fake.Cluster) map[string]any {
	out := map[string]any{}
	for _, o := range c.Objects() {
		if key := olmcore.KeyOf(o); o.GetNamespace() != "evil" && o.GetLabels()[olmcore.LabelOwnerNamespace] != "evil" && !(key.Kind == "Namespace" && key.Name == "evil") {
			values, err := olmcore.ToMap(o)
			require.NoError(t, err)
			out[key.String()] = values
		}
	}
	return out
}

// TestATenantChangesNothingOutsideHisNamespace, nor a user's object in it, nor reads what he may not: whatever he
// writes by hand into his namespace, where the OperatorGroup prescribes an account.
func TestATenantChangesNothingOutsideHisNamespace(t *testing.T) {
	webhook := precious()
	webhook.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: new("https://evil.example.com")}}}
	defaults := precious()
	defaults.Spec.Versions[0].Schema.OpenAPIV3Schema.Default = &apiextensionsv1.JSON{Raw: []byte(`{"image":"evil"}`)}
	finalized := func(annotations map[string]string) *v1alpha1.ClusterServiceVersion {
		v := versionOf("evil")
		v.Annotations, v.Finalizers = annotations, []string{"operators.coreos.com/csv-cleanup"}
		return v
	}
	for name, attack := range map[string]func(t *testing.T, c *fake.Cluster, run func()){
		"a definition with his conversion webhook": func(t *testing.T, c *fake.Cluster, run func()) {
			tenantsPlan(t, c, "evil", "plan", versionStep(t, "evil"), definitionStep(t, webhook))
		},
		"a definition with his defaults": func(t *testing.T, c *fake.Cluster, run func()) {
			tenantsPlan(t, c, "evil", "plan", versionStep(t, "evil"), definitionStep(t, defaults))
		},
		"a definition by a step of no version": func(t *testing.T, c *fake.Cluster, run func()) {
			s := definitionStep(t, webhook)
			s.Resolving = ""
			tenantsPlan(t, c, "evil", "plan", s)
		},
		"a user's object, a ClusterRole, a Secret of OLM's, other namespaces": func(t *testing.T, c *fake.Cluster, run func()) {
			for name, s := range map[string]*v1alpha1.Step{
				"a": tenantStep("", "", "v1", "ConfigMap", "settings", `{"metadata":{"name":"settings"},"data":{"evil":"1"}}`),
				"b": tenantStep("", "rbac.authorization.k8s.io", "v1", "ClusterRole", "users", `{"metadata":{"name":"users"},"rules":[]}`),
				"c": tenantStep("", "", "v1", "Secret", "certificate", ""),
				"d": tenantStep("", "", "v1", "Service", "dns", `{"metadata":{"name":"dns","namespace":"kube-system"},"spec":{"ports":[{"port":53}]}}`),
			} {
				tenantsPlan(t, c, "evil", "plan-"+name, s)
			}
		},
		"the unpacked bundle of another, and the deletion of the plan": func(t *testing.T, c *fake.Cluster, run func()) {
			tenantsPlan(t, c, "evil", "plan", privateStep())
			run()
			require.NoError(t, c.Delete(olmcore.Ref{APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: "InstallPlan", Namespace: "evil", Name: "plan"}))
		},
		"a version with a clean-up of all namespaces": func(t *testing.T, c *fake.Cluster, run func()) {
			require.NoError(t, c.Create(finalized(map[string]string{"olm.targetNamespaces": "", "olm.operatorGroup": "group", "olm.operatorNamespace": "evil"})))
			run()
			require.NoError(t, c.Delete(olmcore.RefOf(fake.Find[*v1alpha1.ClusterServiceVersion](c, "evil", "thing.v1")).Unversioned()))
		},
		"a group without the account, after the plan was made": func(t *testing.T, c *fake.Cluster, run func()) {
			tenantsPlan(t, c, "evil", "plan", tenantStep("", "rbac.authorization.k8s.io", "v1", "ClusterRole", "evil", `{"metadata":{"name":"evil"},"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]}`))
			run()
			require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1", Kind: "OperatorGroup", Namespace: "evil", Name: "group"}))
			require.NoError(t, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "other"},
				Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"evil"}}}))
		},
		"an OperatorCondition by hand, for accounts and Deployments of others": func(t *testing.T, c *fake.Cluster, run func()) {
			for _, name := range []string{"settings", "thing.v1"} {
				require.NoError(t, c.Create(&operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: name}, Spec: operatorsv2.OperatorConditionSpec{
					ServiceAccounts: []string{"weak", "system:serviceaccount:victim:default", "victim/default"}, Deployments: []string{"thing", "../victim/thing"},
				}}))
			}
			run()
			require.Equal(t, []string{"settings"}, fake.Find[*rbacv1.Role](c, "evil", "settings").Rules[0].ResourceNames)
			require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "evil", Name: "weak"}}, fake.Find[*rbacv1.RoleBinding](c, "evil", "settings").Subjects)
		},
		"another account in the status of the group and of the plan": func(t *testing.T, c *fake.Cluster, run func()) {
			admin := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "kube-system", Name: "weak"}
			g := fake.Find[*operatorsv1.OperatorGroup](c, "evil", "group").DeepCopy()
			g.Status.ServiceAccountRef = admin
			require.NoError(t, c.UpdateStatus(g))
			tenantsPlan(t, c, "evil", "plan", tenantStep("", "rbac.authorization.k8s.io", "v1", "ClusterRole", "evil", `{"metadata":{"name":"evil"},"rules":[]}`))
			p := fake.Find[*v1alpha1.InstallPlan](c, "evil", "plan").DeepCopy()
			p.Status.AttenuatedServiceAccountRef = admin
			require.NoError(t, c.UpdateStatus(p))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, d := tenantWorld(t)
			run := func() { require.NoError(t, d.RunFor(t.Context(), 20*time.Minute)) }
			run()
			c.Advance(48 * time.Hour) // what is kept for a while may go
			users := fake.Find[*corev1.ConfigMap](c, "evil", "settings").DeepCopy()
			before := outside(t, c)
			attack(t, c, run)
			run()
			if diff := cmp.Diff(before, outside(t, c)); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
			require.Equal(t, users.Data, fake.Find[*corev1.ConfigMap](c, "evil", "settings").Data)
			require.Nil(t, fake.Find[*corev1.Secret](c, "evil", "certificate"))
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, "evil", "private.v1"))
		})
	}
}

// TestATenantHidesNoCharactersInSharedStatuses checks that the characters that people do not see are escaped in
// messages which the controller copies into a status. An Operator is cluster-scoped.
func TestATenantHidesNoCharactersInSharedStatuses(t *testing.T) {
	c, d := tenantWorld(t)
	d.Controllers = (&olm.OLM{Options: controllers.Options{Sweeps: true, Operators: true}}).Controllers()
	labels := map[string]string{"operators.coreos.com/shop.evil": ""}
	conditions := []metav1.Condition{{Type: "Upgradeable", Status: "False", Reason: "Hidden", Message: "no\u202etext"}}
	require.NoError(t, c.Create(&operatorsv2.OperatorCondition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "shop", Labels: labels},
		Spec:       operatorsv2.OperatorConditionSpec{Conditions: conditions},
	}))
	require.NoError(t, c.Create(&v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "shop", Labels: labels},
		Spec:       &v1alpha1.SubscriptionSpec{Package: "shop", CatalogSource: "any", CatalogSourceNamespace: "evil"},
	}))
	require.NoError(t, d.RunFor(t.Context(), 10*time.Minute))
	condition := fake.Find[*operatorsv2.OperatorCondition](c, "evil", "shop")
	require.Len(t, condition.Status.Conditions, 1)
	operator := fake.Find[*operatorsv1.Operator](c, "", "shop.evil")
	require.NotNil(t, operator)
	found := 0
	for _, ref := range operator.Status.Components.Refs {
		for _, of := range ref.Conditions {
			found++
			require.True(t, printable.IsPlain(of.Message), "Operator: %q", of.Message)
		}
	}
	require.NotZero(t, found)
	require.Equal(t, `no\u202etext`, condition.Status.Conditions[0].Message)
}
