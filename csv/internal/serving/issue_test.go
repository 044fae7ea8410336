// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

const (
	secretMismatch     = "secret cool-service-cert CA cert hash does not match expected"
	deploymentMismatch = "deployment cool CA cert hash does not match expected"
)

func secret(change func(*corev1.Secret)) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) { change(s.Objects.Secrets.Items[0]) }
}

func backing(change func(*appsv1.Deployment)) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) { change(s.Deployments[0]) }
}

// second adds an APIService that the same Deployment serves.
func secondAPI(s *internalserving.Clients) {
	s.CSV.Spec.APIServiceDefinitions.Owned = append([]v1alpha1.APIServiceDescription{
		{Name: "ices", Group: "ice.example.com", Version: "v2", Kind: "Ice", DeploymentName: "cool", ContainerPort: 8443},
	}, s.CSV.Spec.APIServiceDefinitions.Owned...)
	a := liveAPI()
	a.Name, a.Spec.Version = "v2.ice.example.com", "v2"
	s.APIServices = append(s.APIServices, a)
}

// TestIssueReportsTheFirstFailedCheck contains each check, in the order in which they are made. All later checks fail
// too.
func TestIssueReportsTheFirstFailedCheck(t *testing.T) {
	steps := []struct {
		name  string
		spoil func(*internalserving.Clients)
		want  string
	}{
		{"the kube-system RoleBinding", func(s *internalserving.Clients) { s.Objects.RoleBindings.Items = s.Objects.RoleBindings.Items[:1] },
			`rolebinding.rbac.authorization.k8s.io "cool-service-auth-reader" not found`},
		{"the ClusterRoleBinding", func(s *internalserving.Clients) { s.Objects.ClusterRoleBindings.Items = nil },
			`clusterrolebinding.rbac.authorization.k8s.io "cool-service-system:auth-delegator" not found`},
		{"the RoleBinding", func(s *internalserving.Clients) { s.Objects.RoleBindings.Items = nil },
			`rolebinding.rbac.authorization.k8s.io "cool-service-cert" not found`},
		{
			"the Role",
			func(s *internalserving.Clients) { s.Objects.Roles.Items = nil },
			`role.rbac.authorization.k8s.io "cool-service-cert" not found`,
		},
		{"the ServiceAccount", func(s *internalserving.Clients) { s.ServiceAccounts = nil }, `serviceaccount "cool" not found`},
		{"the hash of the Deployment", backing(func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }), deploymentMismatch},
		{"the Deployment", func(s *internalserving.Clients) { s.Deployments = nil }, `deployment.apps "cool" not found`},
		{"the hash of the Secret", secret(func(o *corev1.Secret) { o.Annotations = nil }), secretMismatch},
		{
			"the serving certificate",
			secret(func(o *corev1.Secret) { o.Data["tls.crt"] = []byte("garbage") }),
			"tls.crt of secret cool-service-cert has no certificate",
		},
		{"the Secret", func(s *internalserving.Clients) { s.Objects.Secrets.Items = nil }, `secret "cool-service-cert" not found`},
		{
			"the bundle",
			live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = []byte("garbage") }),
			"caBundle of APIService v1.ice.example.com has no certificate",
		},
		{
			"the reference",
			live(func(a *apiregistrationv1.APIService) { a.Spec.Service.Name = "x" }),
			"found APIService and service reference mismatch",
		},
		{"the Service", func(s *internalserving.Clients) { s.Objects.Services.Items = nil }, `service "cool-service" not found`},
		{"the APIService", absent, `apiservice.apiregistration.k8s.io "v1.ice.example.com" not found`},
	}
	s := installedAPI()
	for _, step := range steps {
		step.spoil(&s)
		problem, mendable := s.Issue()
		require.Equal(t, step.want, problem, step.name)
		require.Equal(t, step.name != "the ServiceAccount", mendable, step.name)

		problem, _ = changed(step.spoil).Issue()
		require.Equal(t, step.want, problem, "%s alone", step.name)
	}
}

func TestIssuesOfReferenceCertificateAndRights(t *testing.T) {
	both := join(oldCA, newCA)
	for name, c := range map[string]struct {
		change func(*internalserving.Clients)
		want   string
	}{
		"nothing":             {func(*internalserving.Clients) {}, ""},
		"no owned APIService": {func(s *internalserving.Clients) { s.CSV.Spec.APIServiceDefinitions.Owned = nil }, ""},
		"no service reference": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.Service = nil }), "found APIService and service reference mismatch",
		},
		"a reference elsewhere": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.Service.Namespace = "x" }), "found APIService and service reference mismatch",
		},
		"no bundle": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = nil }), "caBundle of APIService v1.ice.example.com has no certificate",
		},
		"another bundle": {live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = otherCA }), secretMismatch},
		"no Secret data": {secret(func(o *corev1.Secret) { o.Data = nil }), "tls.crt of secret cool-service-cert has no certificate"},
		"a key for a certificate": {secret(func(o *corev1.Secret) {
			o.Data["tls.crt"] = []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
		}), "tls.crt of secret cool-service-cert has no certificate"},
		"the Secret has another hash": {secret(func(o *corev1.Secret) { o.Annotations["olmcahash"] = hashOf(otherCA) }), secretMismatch},
		"the Secret has no hash":      {secret(func(o *corev1.Secret) { o.Annotations["olmcahash"] = "" }), secretMismatch},
		"the Deployment has another hash": {
			backing(func(d *appsv1.Deployment) { d.Spec.Template.Annotations["olmcahash"] = hashOf(otherCA) }), deploymentMismatch,
		},
		"both have another hash": {changes(secret(func(o *corev1.Secret) { o.Annotations["olmcahash"] = "x" }), backing(func(
			d *appsv1.Deployment,
		) {
			d.Spec.Template.Annotations["olmcahash"] = "x"
		})), secretMismatch},
		"certificate rotation: first the caBundle": {changes(
			live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = both }),
			secret(func(o *corev1.Secret) { o.Annotations["olmcahash"], o.Data["olmCAKey"] = hashOf(oldCA), oldCA }),
			backing(func(d *appsv1.Deployment) { d.Spec.Template.Annotations["olmcahash"] = hashOf(oldCA) }),
		), ""},
		"certificate rotation: then the Secret": {changes(
			live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = both }),
			backing(func(d *appsv1.Deployment) { d.Spec.Template.Annotations["olmcahash"] = hashOf(oldCA) }),
		), ""},
		"certificate rotation: then the Deployment": {live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = both }), ""},
		"an authority of two certificates": {changes(
			live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = join(otherCA, oldCA, newCA) }),
			secret(func(o *corev1.Secret) { o.Annotations["olmcahash"], o.Data["olmCAKey"] = hashOf(both), both }),
			backing(func(d *appsv1.Deployment) { d.Spec.Template.Annotations["olmcahash"] = hashOf(both) }),
		), ""},
		"an authority of two of which one is trusted": {
			secret(func(o *corev1.Secret) { o.Annotations["olmcahash"], o.Data["olmCAKey"] = hashOf(both), both }), secretMismatch,
		},
		"the Pods run as the default account": {
			backing(func(d *appsv1.Deployment) { d.Spec.Template.Spec.ServiceAccountName = "" }), `serviceaccount "default" not found`,
		},
		"the default account exists": {changes(backing(func(d *appsv1.Deployment) { d.Spec.Template.Spec.ServiceAccountName = "" }), func(
			s *internalserving.Clients,
		) {
			s.ServiceAccounts[0].Name = "default"
		}), ""},
		"the account of another namespace": {
			func(s *internalserving.Clients) { s.ServiceAccounts[0].Namespace = "x" }, `serviceaccount "cool" not found`,
		},
		"two APIServices of one Deployment": {secondAPI, ""},
		"both have a problem": {changes(secondAPI, func(s *internalserving.Clients) {
			s.APIServices[0].Spec.Service, s.APIServices[1].Spec.CABundle = nil, nil
		}),
			"[found APIService and service reference mismatch, caBundle of APIService v2.ice.example.com has no certificate]"},
		"both have the same problem": {
			changes(secondAPI, func(s *internalserving.Clients) { s.Objects.Services.Items = nil }), `service "cool-service" not found`,
		},
		"the bindings have their second names": {func(s *internalserving.Clients) {
			s.Objects.ClusterRoleBindings.Items[0].Name = internalserving.DelegatorNames("cool", "ns")[1]
			s.Objects.RoleBindings.Items[1].Name = internalserving.ReaderNames("cool", "ns")[1]
		}, ""},
		"nothing was read": {func(s *internalserving.Clients) { s.Objects = nil }, ""},
		"no list was read": {func(s *internalserving.Clients) { s.Objects = &serving.Objects{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := changed(c.change)
			problem, mendable := s.Issue()
			require.Equal(t, c.want, problem)
			isOfAccount := strings.HasPrefix(problem, "serviceaccount") // no installation makes one
			require.Equal(t, problem != "" && !isOfAccount, mendable)
		})
	}
}

// TestIssueStopsAtUnadoptableAPIService checks an APIService that another installation would not repair.
func TestIssueStopsAtUnadoptableAPIService(t *testing.T) {
	s := changed(secondAPI, ownedBy("other", "cool.v2"), func(s *internalserving.Clients) { s.APIServices[1].Spec.CABundle = nil })
	problem, mendable := s.Issue()
	require.Equal(t, "v1.ice.example.com is unadoptable", problem)
	require.False(t, mendable)

	s = changed(secondAPI, func(s *internalserving.Clients) {
		s.APIServices[0].Spec.CABundle, s.APIServices[1].Labels = nil, nil
	})
	problem, mendable = s.Issue()
	require.Equal(t, "[caBundle of APIService v1.ice.example.com has no certificate, v2.ice.example.com is unadoptable]", problem)
	require.False(t, mendable)
}

// TestIncompleteListsCauseNoIssue checks that objects are not missing if their list is incomplete.
func TestIncompleteListsCauseNoIssue(t *testing.T) {
	for name, unread := range map[string]func(*serving.Objects){
		"Services":            func(o *serving.Objects) { o.Services = olmcore.Observed[*corev1.Service]{} },
		"Secrets":             func(o *serving.Objects) { o.Secrets = olmcore.Observed[*corev1.Secret]{} },
		"Roles":               func(o *serving.Objects) { o.Roles = olmcore.Observed[*rbacv1.Role]{} },
		"RoleBindings":        func(o *serving.Objects) { o.RoleBindings = olmcore.Observed[*rbacv1.RoleBinding]{} },
		"ClusterRoleBindings": func(o *serving.Objects) { o.ClusterRoleBindings = olmcore.Observed[*rbacv1.ClusterRoleBinding]{} },
		"Pods":                func(o *serving.Objects) { o.Pods = olmcore.Observed[*corev1.Pod]{} },
	} {
		t.Run(name, func(t *testing.T) {
			s := changed(func(s *internalserving.Clients) { unread(s.Objects) })
			problem, _ := s.Issue()
			require.Empty(t, problem)
			require.Empty(t, apiWrites(s))
			require.Equal(t, internalserving.Healthy, s.Health().State)
		})
	}
}
