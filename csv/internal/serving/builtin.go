// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"k8s.io/apimachinery/pkg/util/sets"
)

// builtIn contains the cluster-scoped resources of Kubernetes by API group, including those of older and alpha
// versions. It does not contain Namespaces, because a namespaceSelector restricts them. A group without cluster-scoped
// resources is listed too, so that its resources are known to be namespaced.
var builtIn = map[string]sets.Set[string]{
	"": sets.New("nodes", "persistentvolumes", "componentstatuses"),
	"admissionregistration.k8s.io": sets.New("mutatingwebhookconfigurations", "validatingwebhookconfigurations",
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings"),
	"apiextensions.k8s.io":         sets.New("customresourcedefinitions"),
	"apiregistration.k8s.io":       sets.New("apiservices"),
	"apps":                         nil,
	"authentication.k8s.io":        sets.New("tokenreviews", "selfsubjectreviews"),
	"authorization.k8s.io":         sets.New("subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
	"autoscaling":                  nil,
	"batch":                        nil,
	"certificates.k8s.io":          sets.New("certificatesigningrequests", "clustertrustbundles"),
	"coordination.k8s.io":          nil,
	"discovery.k8s.io":             nil,
	"events.k8s.io":                nil,
	"extensions":                   sets.New("podsecuritypolicies"),
	"flowcontrol.apiserver.k8s.io": sets.New("flowschemas", "prioritylevelconfigurations"),
	"imagepolicy.k8s.io":           sets.New("imagereviews"),
	"internal.apiserver.k8s.io":    sets.New("storageversions"),
	"networking.k8s.io":            sets.New("ingressclasses", "ipaddresses", "servicecidrs"),
	"node.k8s.io":                  sets.New("runtimeclasses"),
	"policy":                       sets.New("podsecuritypolicies"),
	"rbac.authorization.k8s.io":    sets.New("clusterroles", "clusterrolebindings"),
	"resource.k8s.io": sets.New("deviceclasses", "devicetaintrules", "resourceclasses", "resourcepoolstatusrequests",
		"resourceslices"),
	"scheduling.k8s.io":       sets.New("priorityclasses"),
	"storage.k8s.io":          sets.New("csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"),
	"storagemigration.k8s.io": sets.New("storageversionmigrations"),
}
