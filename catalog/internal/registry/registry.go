// SPDX-License-Identifier: Apache-2.0

// Package registry builds the objects of one catalog's registry: its Pods, and the Service, ServiceAccount, permissions,
// NetworkPolicies and PodDisruptionBudget around them. [Registry.Needed] is what should be, [Registry.Repair] makes
// actions of the difference to what is observed.
package registry

import (
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// Label and annotation keys of OLM.
const (
	LabelServing   = "olm.catalogSource"
	LabelCandidate = "catalogsource.operators.coreos.com/update"

	labelPodHash          = "olm.pod-spec-hash"
	labelServiceHash      = "olm.service-spec-hash"
	labelBundleUnpack     = "operatorframework.io/bundle-unpack-ref"
	LabelConfigMapVersion = "olm.configMapResourceVersion"
	annotationPriority    = "operatorframework.io/priorityclass"
	annotationEvict       = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	annotationApplied     = "kubectl.kubernetes.io/last-applied-configuration"
)

// Annotation keys of this library on registry Pods.
const (
	KeyAttempt  = olmcore.KeyPrefix + "attempt"  // the number of the attempt to start a Pod
	KeyPurpose  = olmcore.KeyPrefix + "purpose"  // why it was made
	KeyReplaces = olmcore.KeyPrefix + "replaces" // the UID of the Pod that it replaces
	KeyCause    = olmcore.KeyPrefix + "cause"    // why it replaces that

	KeyKeptNumber = olmcore.KeyPrefix + "kept-pod-number" // the Pod stays while those with lower numbers are deleted

	keyConfigMapHash = olmcore.KeyPrefix + "config-map-hash"
	keyPullSecrets   = olmcore.KeyPrefix + "pull-secrets"
)

// GRPC is the name of the registry's port and protocol, Port its number.
const (
	GRPC = "grpc"
	Port = "50051"

	port = 50051
)

// Suffixes of the names of objects.
const (
	SuffixAccount      = "-configmap-server" // of a source of type configmap
	SuffixRole         = "-configmap-reader"
	SuffixBinding      = "-server-configmap-reader"
	SuffixServerPolicy = "-grpc-server"
	SuffixUnpackPolicy = "-unpack-bundles"
)

// Registry is what the objects of one catalog are made from.
type Registry struct {
	Source              *v1alpha1.CatalogSource              // the owner of all objects
	ConfigMap           *corev1.ConfigMap                    // the content of a source of type configmap or internal, else nil
	Restricted          bool                                 // Pods get the security context of the restricted Pod security standard
	Replicas            int                                  // the number of Pods
	SpreadHosts         corev1.UnsatisfiableConstraintAction // of hosts that several replicas would share; empty: they are not spread
	OPMImage, UtilImage string                               // these serve catalogs with extractContent
	ServerImage         string                               // this one serves ConfigMaps
	UserID              int64                                // the user of restricted Pods; 0 and below: none is set
	StartupFailures     int32                                // how many startup probes may fail
	Resources           corev1.ResourceRequirements          // those of the serving container
	Observed            Objects                              // those with the names that the catalog uses
	Unread              Unread

	// What Complete adds.

	Needed        Objects // those that should be
	AccountShared bool    // the ServiceAccount of the catalog's name is not the catalog's
	pullSecrets   []corev1.LocalObjectReference
	podSpec       corev1.PodSpec
	podHash       string // that of podSpec, which new Pods carry as a label
	contentHash   string // that of what the ConfigMap holds; its metadata do not matter
}

// Complete adds what follows from the fields: the objects and Pods that are needed.
func (r *Registry) Complete() {
	account := r.Observed.Account
	r.AccountShared = account != nil && (len(account.OwnerReferences) == 0 || OfOthers(r.Source, account))
	r.pullSecrets = r.accountSecrets(account)
	r.podSpec = r.shape().spec(probeMain)
	r.podHash = podHash(r.podSpec)
	if cm := r.ConfigMap; cm != nil {
		r.contentHash, _ = olmcore.Hash(struct {
			Name       string
			Data       map[string]string
			BinaryData map[string][]byte
		}{cm.Name, cm.Data, cm.BinaryData})
	}
	r.Needed = r.objects()
}

// FromConfigMap reports whether a catalog is made from a ConfigMap.
func FromConfigMap(cs *v1alpha1.CatalogSource) bool {
	return cs.Spec.SourceType == v1alpha1.SourceTypeConfigmap || cs.Spec.SourceType == v1alpha1.SourceTypeInternal
}

// servingLabels select the Pods that serve: never a candidate.
func servingLabels(name string) map[string]string {
	return map[string]string{LabelServing: name, olmcore.LabelManaged: "true"}
}

// ServiceName returns the name of the Service and PodDisruptionBudget of a catalog: dots are not allowed in it.
func ServiceName(name string) string { return strings.ReplaceAll(name, ".", "-") }

// Address is what to dial for the Service.
func (r *Registry) Address() string {
	return ServiceName(r.Source.Name) + "." + r.Source.Namespace + ".svc:" + Port
}

// Current reports whether a Pod was made from the present spec, by any release of OLM, and from what the ConfigMap holds.
func (r *Registry) Current(pod *corev1.Pod) bool {
	label := pod.Labels[labelPodHash]
	content, knowsContent := pod.Annotations[keyConfigMapHash]
	switch {
	case label == "":
		return false
	case r.ConfigMap != nil && !knowsContent:
		return madeOfVersion(pod, r.ConfigMap) // OLM compares no hash of a config map server
	case label != r.podHash && label != podHash(r.shape().spec(probeV046)) && label != podHash(r.shape().spec(probeV041)):
		return false
	}
	return r.ConfigMap == nil || content == r.contentHash
}

// madeOfVersion reports whether a Pod that OLM made serves this version of a ConfigMap.
func madeOfVersion(pod *corev1.Pod, cm *corev1.ConfigMap) bool {
	if pod.Labels[LabelConfigMapVersion] != cm.ResourceVersion || len(pod.Spec.Containers) != 1 {
		return false
	}
	command := pod.Spec.Containers[0].Command
	i := slices.Index(command, "-c")
	return i >= 0 && i+1 < len(command) && command[i+1] == cm.Name
}

const podSuffix = 10

func podBase(name string) string { return strings.TrimRight(name[:min(len(name), 52)], "-.") }

// IsPodName reports whether a Pod's name may be one that FreeNames gives.
func IsPodName(name, source string) bool {
	rest, found := strings.CutPrefix(name, podBase(source)+"-")
	return found && len(rest) == podSuffix
}

// SourceOfPodName returns the CatalogSource whose Pods may have a name; empty when none. Cut: the name was too long, so
// that it may be another one that begins so.
func SourceOfPodName(name string) (source string, cut bool) {
	at := len(name) - podSuffix - 1
	if at <= 0 || name[at] != '-' {
		return "", false
	}
	return name[:at], at > 40
}

// FreeNames returns the first n computed names that no observed Pod has, whoever it belongs to by now. A decision on the
// same Pods, or on a stale list of them, gives the same names, so that the API server refuses the twin.
func (r *Registry) FreeNames(pods []*corev1.Pod, n int) (names []string) {
	for number := 0; len(names) < n; number++ {
		name := podBase(r.Source.Name) + "-" + olmcore.NameSuffix(podSuffix, string(r.Source.UID), r.podHash, strconv.Itoa(number))
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == name && p.Namespace == r.Source.Namespace }) {
			names = append(names, name)
		}
	}
	return names
}
