// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// DeploymentNames returns the sorted names of the Deployments that serve webhooks or APIs. A Deployment is included if
// the install strategy contains it, and an owned APIService or a webhook description names it.
func DeploymentNames(c *model.CSV) []string {
	declared := model.DeploymentNames(c)
	var names []string
	for _, d := range c.Spec.APIServiceDefinitions.Owned {
		names = append(names, d.DeploymentName)
	}
	for i := range c.Spec.WebhookDefinitions {
		names = append(names, c.Spec.WebhookDefinitions[i].DeploymentName)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !declared.Has(name) })
}

// ServiceName returns the name of the Service of a Deployment: the name of the Deployment with every dot replaced by a
// dash, followed by "-service".
//
// Differs: OLM keeps the dots, so the API server rejects the Service. This library replaces them.
func ServiceName(deployment string) string {
	return strings.ReplaceAll(deployment, ".", "-") + "-service"
}

// CertificateName returns the name of the Secret of a Deployment. The Role and the RoleBinding that let its
// ServiceAccount read the Secret have the same name.
func CertificateName(deployment string) string { return ServiceName(deployment) + "-cert" }

// DelegatorNames returns the possible names of the ClusterRoleBinding that grants a Deployment the ClusterRole
// system:auth-delegator. The first name is the preferred one. The second name is used if another namespace uses the
// first. If the name of the Deployment contains dots, the third name is the name that OLM uses. OLM keeps the dots, and
// the other two names replace them with dashes.
func DelegatorNames(deployment, namespace string) []string {
	return outsideNames(deployment, "-system:auth-delegator", namespace)
}

// ReaderNames returns the possible names of the RoleBinding in kube-system that grants a Deployment the Role
// extension-apiserver-authentication-reader.
func ReaderNames(deployment, namespace string) []string {
	return outsideNames(deployment, "-auth-reader", namespace)
}

func outsideNames(deployment, tail, namespace string) []string {
	name := ServiceName(deployment) + tail
	names := []string{name, name + "-" + olmcore.NameSuffix(8, namespace)}
	if dotted := deployment + "-service" + tail; dotted != name {
		names = append(names, dotted)
	}
	return names
}

// IsObjectName reports whether ServiceName or CertificateName could have returned a name.
func IsObjectName(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(name, "-cert"), "-service")
}

// AccountName returns the name of the ServiceAccount in the spec of a Deployment, or "default" if the spec names none.
func AccountName(spec *appsv1.DeploymentSpec) string {
	return cmp.Or(spec.Template.Spec.ServiceAccountName, "default")
}
