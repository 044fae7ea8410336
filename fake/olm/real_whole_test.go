// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// requireWhole: a Succeeded version has all that it describes. targets are the namespaces that it watches; none: all.
func requireWhole(t *testing.T, c *fake.Cluster, csv *v1alpha1.ClusterServiceVersion, targets []string) {
	t.Helper()
	strategy := csv.Spec.InstallStrategy.StrategySpec
	authorities := map[string][]byte{} // by Deployment
	for _, w := range csv.Spec.WebhookDefinitions {
		authorities[w.DeploymentName] = requireServing(t, c, csv.Namespace, w.DeploymentName)
	}
	for _, a := range csv.Spec.APIServiceDefinitions.Owned {
		authorities[a.DeploymentName] = requireServing(t, c, csv.Namespace, a.DeploymentName)
		service := fake.Find[*apiregistrationv1.APIService](c, "", a.GetName())
		require.NotNil(t, service, a.GetName())
		require.Equal(t, apiregistrationv1.ConditionTrue, service.Status.Conditions[0].Status)
		require.Equal(t, string(authorities[a.DeploymentName]), string(service.Spec.CABundle))
		require.Equal(t, csv.Name, service.Labels[olmcore.LabelOwner])
	}
	for i := range csv.Spec.WebhookDefinitions {
		w := &csv.Spec.WebhookDefinitions[i]
		requireWebhook(t, c, csv, w, authorities[w.DeploymentName], targets)
	}
	for _, d := range strategy.DeploymentSpecs {
		live := fake.Find[*appsv1.Deployment](c, csv.Namespace, d.Name)
		require.NotNil(t, live, d.Name)
		for _, container := range live.Spec.Template.Spec.Containers {
			require.Contains(t, container.Env, corev1.EnvVar{Name: "OPERATOR_CONDITION_NAME", Value: csv.Name})
		}
	}
	require.NotNil(t, fake.Find[*operatorsv2.OperatorCondition](c, csv.Namespace, csv.Name), "its OperatorCondition")
}

// requireReach: a Succeeded version is copied into the namespaces that it watches, and may do there what it asks for.
func requireReach(t *testing.T, c *fake.Cluster, csv *v1alpha1.ClusterServiceVersion, targets []string) {
	t.Helper()
	strategy := csv.Spec.InstallStrategy.StrategySpec
	watched := slices.Clone(targets)
	for _, o := range c.Objects() {
		if _, ok := o.(*corev1.Namespace); ok && len(targets) == 0 {
			watched = append(watched, o.GetName())
		}
	}
	for _, name := range rolesOf(c, csv) {
		require.NotNil(t, fake.Find[*rbacv1.ClusterRole](c, "", name), "what users may do: %s", name)
	}
	for _, ns := range watched {
		if ns != csv.Namespace {
			copied := fake.Find[*v1alpha1.ClusterServiceVersion](c, ns, csv.Name)
			require.NotNil(t, copied, "its copy in %s", ns)
			require.True(t, copied.IsCopied())
			require.Equal(t, v1alpha1.CSVPhaseSucceeded, copied.Status.Phase)
		}
		for _, p := range strategy.Permissions {
			requireGranted(t, c, csv.Namespace, p, ns)
		}
		for _, p := range strategy.ClusterPermissions {
			requireGranted(t, c, csv.Namespace, p, ns)
		}
	}
}

// rolesOf are the ClusterRoles through which users get at the APIs of a version: those of the definitions that came
// with it, not of those that were there before.
func rolesOf(c *fake.Cluster, csv *v1alpha1.ClusterServiceVersion) (names []string) {
	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		notes := fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", d.Name).Annotations
		if !slices.Contains(slices.Collect(maps.Values(notes)), csv.Namespace+"/"+csv.Name) {
			continue
		}
		for _, suffix := range []string{"admin", "edit", "view", "crdview"} {
			names = append(names, d.Name+"-"+d.Version+"-"+suffix)
		}
	}
	for _, d := range csv.Spec.APIServiceDefinitions.Owned {
		for _, suffix := range []string{"admin", "edit", "view"} {
			names = append(names, d.Name+"-"+d.Version+"-"+suffix)
		}
	}
	return names
}

// requireServing: a Deployment serves with a certificate, and may do what that takes. It returns the authority.
func requireServing(t *testing.T, c *fake.Cluster, namespace, deployment string) (authority []byte) {
	t.Helper()
	service := strings.ReplaceAll(deployment, ".", "-") + "-service"
	require.NotNil(t, fake.Find[*corev1.Service](c, namespace, service), service)
	secret := fake.Find[*corev1.Secret](c, namespace, service+"-cert")
	require.NotNil(t, secret, service+"-cert")
	require.Empty(t, serving.Inspect(serving.FromData(secret.Data), serving.Hosts(service, namespace), c.Now()).Problem)
	authority = secret.Data[serving.CAKey]
	hash := fmt.Sprintf("%x", sha256.Sum256(authority))
	require.Equal(t, hash, secret.Annotations["olmcahash"])
	template := fake.Find[*appsv1.Deployment](c, namespace, deployment).Spec.Template
	require.Equal(t, hash, template.Annotations["olmcahash"])
	var mounted []string
	for _, v := range template.Spec.Volumes {
		if v.Secret != nil && v.Secret.SecretName == secret.Name {
			mounted = append(mounted, v.Name)
		}
	}
	require.Subset(t, mounted, []string{"apiservice-cert", "webhook-cert"})
	require.NotNil(t, fake.Find[*rbacv1.Role](c, namespace, secret.Name))
	require.NotNil(t, fake.Find[*rbacv1.RoleBinding](c, namespace, secret.Name))
	require.NotNil(t, fake.Find[*rbacv1.ClusterRoleBinding](c, "", service+"-system:auth-delegator"))
	require.NotNil(t, fake.Find[*rbacv1.RoleBinding](c, "kube-system", service+"-auth-reader"))
	return authority
}

// requireWebhook: the API server calls a webhook, for the namespaces that the operator watches.
func requireWebhook(
	t *testing.T,
	c *fake.Cluster,
	csv *v1alpha1.ClusterServiceVersion,
	w *v1alpha1.WebhookDescription,
	authority []byte,
	targets []string,
) {
	t.Helper()
	labels := olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: csv.Namespace, Name: csv.Name}.Labels()
	labels["olm.webhook-description-generate-name"] = w.GenerateName
	isOf := func(o olmcore.Object) bool { _, lacks := olmcore.MergeMaps(o.GetLabels(), labels); return !lacks }
	var clients []admissionregistrationv1.WebhookClientConfig
	for _, o := range c.Objects() {
		switch o := o.(type) {
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			if w.Type == v1alpha1.ValidatingAdmissionWebhook && isOf(o) {
				clients = append(clients, o.Webhooks[0].ClientConfig)
				require.Equal(t, len(targets) > 0, len(o.Webhooks[0].NamespaceSelector.MatchLabels) > 0)
			}
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			if w.Type == v1alpha1.MutatingAdmissionWebhook && isOf(o) {
				clients = append(clients, o.Webhooks[0].ClientConfig)
				require.Equal(t, len(targets) > 0, len(o.Webhooks[0].NamespaceSelector.MatchLabels) > 0)
			}
		case *apiextensionsv1.CustomResourceDefinition:
			if w.Type == v1alpha1.ConversionWebhook && slices.Contains(w.ConversionCRDs, o.Name) {
				require.Equal(t, apiextensionsv1.WebhookConverter, o.Spec.Conversion.Strategy)
				from := o.Spec.Conversion.Webhook.ClientConfig
				clients = append(clients, admissionregistrationv1.WebhookClientConfig{CABundle: from.CABundle, Service: &admissionregistrationv1.ServiceReference{Namespace: from.Service.Namespace, Name: from.Service.Name}})
			}
		}
	}
	require.Len(t, clients, max(1, len(w.ConversionCRDs)), w.GenerateName)
	for _, client := range clients {
		require.Equal(t, string(authority), string(client.CABundle))
		require.Equal(t, csv.Namespace, client.Service.Namespace)
		require.Equal(t, strings.ReplaceAll(w.DeploymentName, ".", "-")+"-service", client.Service.Name)
	}
}

// requireGranted: a ServiceAccount of the operator may do in a namespace what the version asks for.
func requireGranted(t *testing.T, c *fake.Cluster, namespace string, p v1alpha1.StrategyDeploymentPermissions, target string) {
	t.Helper()
	is := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == namespace && s.Name == p.ServiceAccountName
		})
	}
	var rules []rbacv1.PolicyRule
	grant := func(ref rbacv1.RoleRef) {
		if ref.Kind == "ClusterRole" {
			if role := fake.Find[*rbacv1.ClusterRole](c, "", ref.Name); role != nil {
				rules = append(rules, role.Rules...)
			}
		} else if role := fake.Find[*rbacv1.Role](c, target, ref.Name); role != nil {
			rules = append(rules, role.Rules...)
		}
	}
	ctx := context.Background()
	bindings, err := olmcore.List[*rbacv1.RoleBinding](ctx, c, target, nil)
	require.NoError(t, err)
	for _, b := range bindings {
		if is(b.Subjects) {
			grant(b.RoleRef)
		}
	}
	everywhere, err := olmcore.List[*rbacv1.ClusterRoleBinding](ctx, c, "", nil)
	require.NoError(t, err)
	for _, b := range everywhere {
		if is(b.Subjects) {
			grant(b.RoleRef)
		}
	}
	covered, missing := validation.Covers(rules, p.Rules)
	require.True(t, covered, "%s lacks in %s: %v", p.ServiceAccountName, target, missing)
}

// requireNothingLeft: of what was not there before, only the definitions are, without their conversions, and the roles
// for their kinds, which go with them.
func requireNothingLeft(t *testing.T, c *fake.Cluster, before map[olmcore.Key]bool) {
	t.Helper()
	var left []string
	for _, o := range c.Objects() {
		key := olmcore.KeyOf(o)
		if crd, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
			require.True(t, crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter, crd.Name)
			continue
		}
		owners := o.GetOwnerReferences()
		if !before[key] && !(key.Kind == "ClusterRole" && len(owners) == 1 && owners[0].Kind == "CustomResourceDefinition") {
			left = append(left, key.String())
		}
	}
	require.Empty(t, left)
}
