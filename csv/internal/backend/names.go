// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// Names returns the Deployments of a CSV that the API server calls, sorted: those that owned APIServices and webhook
// descriptions name and that its strategy has.
func Names(c *owned.CSV) []string {
	declared := owned.Deployments(c)
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

// ServiceName is the name of the Service of a Deployment, from which the names of all other objects derive.
//
// Differs: OLM keeps the dots of a Deployment's name in the names of objects, which the API server refuses for
// Services.
func ServiceName(deployment string) string {
	return strings.ReplaceAll(deployment, ".", "-") + "-service"
}

// CertificateName is the name of the Secret of a Deployment, and of the Role and the RoleBinding through which its
// ServiceAccount reads it.
func CertificateName(deployment string) string { return ServiceName(deployment) + "-cert" }

// DelegatorNames are the names that the ClusterRoleBinding of a Deployment can have which lets it delegate
// authentication: OLM's, the one for when another namespace has that, and the one that OLM gives with the dots of the
// Deployment's name.
func DelegatorNames(deployment, namespace string) []string {
	return outsideNames(deployment, "-system:auth-delegator", namespace)
}

// ReaderNames are the names that the RoleBinding of a Deployment in kube-system can have which lets it read the
// configuration of extension API servers.
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

// IsObjectName reports whether a name can be that of a Service or a Secret of a Deployment.
func IsObjectName(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(name, "-cert"), "-service")
}

// AccountName is the ServiceAccount that the Pods of a Deployment with a certificate run as.
func AccountName(spec *appsv1.DeploymentSpec) string {
	return cmp.Or(spec.Template.Spec.ServiceAccountName, "default")
}
