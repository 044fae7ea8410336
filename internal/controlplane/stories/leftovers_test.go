// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/olmcore"
)

// owned are the names of the objects of a kind that are labelled as those of a version of the story.
func owned[T olmcore.Object](s *story, namespace, version string) (names []string) {
	for _, o := range listIn[T](s, namespace) {
		if o.GetLabels()["olm.owner"] == version && o.GetLabels()["olm.owner.namespace"] == s.ns {
			names = append(names, o.GetName())
		}
	}
	return names
}

// seesNodes gives the operator a permission for the whole cluster.
var seesNodes = edited(func(c *v1alpha1.ClusterServiceVersion) {
	c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{
		ServiceAccountName: "alpha", Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}},
	}}
})

// isCalled lists a webhook of the operator.
func isCalled(kind v1alpha1.WebhookAdmissionType, conversion ...string) change {
	return func(s *story, b *bundle) {
		path, none := "/hook", admissionregistrationv1.SideEffectClassNone
		hook := v1alpha1.WebhookDescription{
			GenerateName: strings.ToLower(string(kind)) + "." + s.apiGroup(), Type: kind, DeploymentName: "alpha", ContainerPort: 443,
			SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, WebhookPath: &path, ConversionCRDs: mapped(conversion, s.text),
		}
		if len(conversion) == 0 {
			hook.Rules = []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{s.apiGroup()}, APIVersions: []string{"v1"}, Resources: []string{"nothings"}},
			}}
		}
		b.csv.Spec.WebhookDefinitions = append(b.csv.Spec.WebhookDefinitions, hook)
	}
}

func TestWhatGoesWithAVersion(t *testing.T) {
	t.Parallel()
	tell(t, "what an installation made in its namespace", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		roles, bindings := owned[*rbacv1.Role](s, s.ns, "alpha.v1.0.0"), owned[*rbacv1.RoleBinding](s, s.ns, "alpha.v1.0.0")
		require.Len(s, roles, 1)
		require.Len(s, bindings, 1)
		s.uninstall()
		s.versionGoes()
		s.until("all is gone", func() bool {
			return !exists[*rbacv1.Role](s, roles[0]) && !exists[*rbacv1.RoleBinding](s, bindings[0]) &&
				!exists[*corev1.ServiceAccount](s, "alpha") && !exists[*appsv1.Deployment](s, "alpha") && len(list[*v1alpha1.InstallPlan](s)) == 0
		})
		require.True(s, exists[*operatorsv1.OperatorGroup](s, "group"))
	})
	tell(t, "its ClusterRoles and their bindings, before it is gone itself", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(seesNodes))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		require.Len(s, owned[*rbacv1.ClusterRole](s, "", "alpha.v1.0.0"), 1)
		require.Len(s, owned[*rbacv1.ClusterRoleBinding](s, "", "alpha.v1.0.0"), 1)
		s.uninstall()
		s.versionGoes()
		s.until("all is gone", func() bool {
			return len(owned[*rbacv1.ClusterRole](s, "", "alpha.v1.0.0"))+len(owned[*rbacv1.ClusterRoleBinding](s, "", "alpha.v1.0.0")) == 0
		})
	})
	tell(t, "its webhooks, so that no request waits for an operator that is gone", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", isCalled(v1alpha1.ValidatingAdmissionWebhook), isCalled(v1alpha1.MutatingAdmissionWebhook))
		s.succeeds("alpha.v1.0.0")
		require.Len(s, owned[*admissionregistrationv1.ValidatingWebhookConfiguration](s, "", "alpha.v1.0.0"), 1)
		require.Len(s, owned[*admissionregistrationv1.MutatingWebhookConfiguration](s, "", "alpha.v1.0.0"), 1)
		remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
		s.versionGoes()
		s.until("nothing calls it", func() bool {
			return len(owned[*admissionregistrationv1.ValidatingWebhookConfiguration](s, "", "alpha.v1.0.0"))+
				len(owned[*admissionregistrationv1.MutatingWebhookConfiguration](s, "", "alpha.v1.0.0")) == 0
		})
		s.until("its Service and its certificate are gone", func() bool {
			return !exists[*corev1.Service](s, "alpha-service") && !exists[*corev1.Secret](s, "alpha-service-cert")
		})
	})
	tell(t, "its permissions in the namespaces that it watched", func(s *story) {
		s.namespace("NS-watched")
		s.groupOf("group", "{targetNamespaces: [NS-watched]}")
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.until("it may act there", func() bool { return len(s.lifted("NS-watched")) == 2 })
		s.uninstall()
		s.versionGoes()
		s.until("it may act there no more", func() bool { return len(s.lifted("NS-watched")) == 0 })
	})
	tell(t, "but not the definition of its API, the custom resources, and the roles of their users", func(s *story) {
		s.withWidget("")
		user := "widgets." + s.apiGroup() + "-v1-view"
		s.until("there is a role for its users", func() bool { return getIn[*rbacv1.ClusterRole](s, "", user).Name != "" })
		s.uninstall()
		s.versionGoes()
		s.atRest()
		require.NotNil(s, s.widget())
		require.NotEmpty(s, getIn[*apiextensionsv1.CustomResourceDefinition](s, "", "widgets.NS.example.com").Name)
		require.NotEmpty(s, getIn[*rbacv1.ClusterRole](s, "", user).Name)
	})
	tell(t, "which one installed again finds as they were", func(s *story) {
		s.withWidget("")
		s.uninstall()
		s.versionGoes()
		uid := s.widget().GetUID()
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		require.Equal(s, uid, s.widget().GetUID())
	})
	tell(t, "and its Operator object, once a person deletes it", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.until("it is there", func() bool { return slices.Contains(components(s, "alpha"), "Deployment") })
		s.uninstall()
		s.versionGoes()
		s.until("nothing is named", func() bool { return len(components(s, "alpha")) == 0 })
		removeIn[*operatorsv1.Operator](s, "", "alpha.NS")
		s.until("it is gone", func() bool { return operatorOf(s, "alpha").UID == "" })
		s.atRest()
		require.Empty(s, operatorOf(s, "alpha").UID)
	})
}

// lifted are the roles and bindings that an operator of the story has in another namespace.
func (s *story) lifted(namespace string) (names []string) {
	for _, r := range listIn[*rbacv1.Role](s, namespace) {
		if r.Labels["olm.copiedFrom"] == s.ns {
			names = append(names, r.Name)
		}
	}
	for _, b := range listIn[*rbacv1.RoleBinding](s, namespace) {
		if b.Labels["olm.copiedFrom"] == s.ns {
			names = append(names, b.Name)
		}
	}
	return names
}

func TestWhatGoesWithAnOperatorGroup(t *testing.T) {
	t.Parallel()
	// watching begins with an operator that watches another namespace.
	watching := func(s *story) {
		s.namespace("NS-watched")
		s.groupOf("group", "{targetNamespaces: [NS-watched]}")
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.until("it is seen there, and may act", func() bool {
			return s.copyIn("NS-watched", "alpha.v1.0.0").UID != "" && len(s.lifted("NS-watched")) == 2
		})
	}
	tell(t, "the copies and the permissions of its operators", func(s *story) {
		watching(s)
		remove[*operatorsv1.OperatorGroup](s, "group")
		s.is("alpha.v1.0.0", "Failed NoOperatorGroup: csv in namespace with no operatorgroups")
		s.until("they are gone", func() bool {
			return s.copyIn("NS-watched", "alpha.v1.0.0").UID == "" && len(s.lifted("NS-watched")) == 0
		})
	})
	tell(t, "not the operators themselves, and a new one takes them over", func(s *story) {
		watching(s)
		before := get[*appsv1.Deployment](s, "alpha").UID
		remove[*operatorsv1.OperatorGroup](s, "group")
		s.is("alpha.v1.0.0", "Failed NoOperatorGroup: csv in namespace with no operatorgroups")
		s.groupOf("second", "{targetNamespaces: [NS-watched]}")
		s.succeeds("alpha.v1.0.0")
		require.Equal(s, before, get[*appsv1.Deployment](s, "alpha").UID)
		require.Equal(s, "second", s.csv("alpha.v1.0.0").Annotations["olm.operatorGroup"])
		s.until("it is seen there again, and may act", func() bool {
			return s.copyIn("NS-watched", "alpha.v1.0.0").UID != "" && len(s.lifted("NS-watched")) == 2
		})
	})
}

// An API without a server behind it is in the way of all who ask which APIs there are, and a version with a conversion
// is one of all namespaces: the stories are told alone.
func TestWhatGoesWithAVersionOfTheCluster(t *testing.T) {
	tellAlone(t, "its APIService, so that the API server does not look for it any more", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", edited(func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{
				Name: "readings", Group: s.apiGroup(), Version: "v1", Kind: "Reading", DeploymentName: "alpha", ContainerPort: 8443,
			}}
		}))
		s.until("it waits for its API", func() bool { return s.csv("alpha.v1.0.0").Status.Message == "apiServices not installed" })
		service := func() string { return getIn[*apiregistrationv1.APIService](s, "", "v1.NS.example.com").Name }
		require.NotEmpty(s, service())
		remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
		s.versionGoes()
		s.until("the APIService is gone", func() bool { return service() == "" })
		s.until("so are its permissions", func() bool {
			return len(owned[*rbacv1.RoleBinding](s, "kube-system", "alpha.v1.0.0"))+len(owned[*rbacv1.ClusterRoleBinding](s, "", "alpha.v1.0.0")) == 0
		})
	})
	tellAlone(t, "the conversion of its custom resources, which stay as they are", func(s *story) {
		s.groupOf("group", "{}")
		s.version("alpha", "1.0.0", "", owns("Widget"), supports("AllNamespaces"), isCalled(v1alpha1.ConversionWebhook, "widgets.NS.example.com"))
		s.succeeds("alpha.v1.0.0")
		conversion := func() apiextensionsv1.ConversionStrategyType {
			return getIn[*apiextensionsv1.CustomResourceDefinition](s, "", "widgets.NS.example.com").Spec.Conversion.Strategy
		}
		require.Equal(s, apiextensionsv1.WebhookConverter, conversion())
		s.aWidget("")
		remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
		s.versionGoes()
		eventually(s, "nothing is converted", conversion, apiextensionsv1.NoneConverter)
		require.NotNil(s, s.widget())
	})
}
