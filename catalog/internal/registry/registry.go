// SPDX-License-Identifier: Apache-2.0

// Package registry builds the objects of the registry of one CatalogSource: its Pods, and the Service,
// ServiceAccount, Role, RoleBinding, NetworkPolicies and PodDisruptionBudget around them. [Registry.Needed] contains
// the needed objects, and [Registry.Repair] returns the actions that change the observed objects into them.
package registry

import (
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/objecthash"
	"github.com/olmcore/olm/olmcore"
)

// Keys of OLM's labels and annotations.
const (
	// LabelServing is the label of Pods that the Service selects. The value is the name of the CatalogSource.
	LabelServing = "olm.catalogSource"
	// LabelCandidate is the label of candidates: Pods that the Service does not select yet. The value is the name of the
	// CatalogSource.
	LabelCandidate = "catalogsource.operators.coreos.com/update"
	// LabelConfigMapVersion is the label of Pods that serve a ConfigMap. The value is the resourceVersion of the
	// ConfigMap.
	LabelConfigMapVersion = "olm.configMapResourceVersion"

	labelPodHash       = "olm.pod-spec-hash"
	labelServiceHash   = "olm.service-spec-hash"
	labelBundleUnpack  = "operatorframework.io/bundle-unpack-ref"
	annotationPriority = "operatorframework.io/priorityclass"
	annotationEvict    = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	annotationApplied  = "kubectl.kubernetes.io/last-applied-configuration"
)

// Keys of this library's annotations of registry Pods.
const (
	// KeyAttempt is the annotation with the number of the attempt to start a Pod.
	KeyAttempt = olmcore.KeyPrefix + "attempt"
	// KeyPurpose is the annotation with the purpose of a Pod, for example PurposeInitial.
	KeyPurpose = olmcore.KeyPrefix + "purpose"
	// KeyReplaces is the annotation with the UID of the Pod that the annotated Pod replaces.
	KeyReplaces = olmcore.KeyPrefix + "replaces"
	// KeyCause is the annotation with the cause of the replacement. Only a Pod with the annotation KeyReplaces has this
	// annotation.
	KeyCause = olmcore.KeyPrefix + "cause"
	// KeyKeptNumber is the annotation with the number of a kept Pod. A Pod that serves is deleted only if the kept Pod
	// serves and has a higher number.
	KeyKeptNumber = olmcore.KeyPrefix + "kept-pod-number"

	keyConfigMapHash = olmcore.KeyPrefix + "config-map-hash"
	keyPullSecrets   = olmcore.KeyPrefix + "pull-secrets"
)

// The port of a registry.
const (
	GRPC = "grpc"  // the name of the port, and of the protocol
	Port = "50051" // the number of the port

	port = 50051
)

// Suffixes that the names of objects have after the name of the CatalogSource.
const (
	// SuffixAccount is the suffix of the ServiceAccount. The ServiceAccount has this suffix only if the CatalogSource is
	// served from a ConfigMap.
	SuffixAccount      = "-configmap-server"
	SuffixRole         = "-configmap-reader"
	SuffixBinding      = "-server-configmap-reader"
	SuffixServerPolicy = "-grpc-server"
	SuffixUnpackPolicy = "-unpack-bundles"
)

// Registry contains everything from which the objects of one CatalogSource are built. Set the fields up to Unread, and
// call Complete.
type Registry struct {
	// Source is the CatalogSource, the owner of all objects.
	Source *v1alpha1.CatalogSource
	// ConfigMap contains the content of a CatalogSource of type configmap or internal. ConfigMap is nil for other types.
	ConfigMap *corev1.ConfigMap
	// Restricted is true if Pods get the security context of the restricted Pod security standard.
	Restricted bool
	// Replicas is the number of Pods.
	Replicas int
	// SpreadHosts determines what the scheduler does with a replica that would share a host with another replica. If it is
	// empty, replicas are not spread.
	SpreadHosts corev1.UnsatisfiableConstraintAction
	// OPMImage and UtilImage are the images that serve a catalog whose spec.grpcPodConfig has extractContent. ServerImage
	// is the image that serves ConfigMaps.
	OPMImage, UtilImage, ServerImage string
	// UserID is the ID of the user that runs restricted Pods. If UserID is zero or negative, no user is set.
	UserID int64
	// StartupFailures is the failureThreshold of the startup probe.
	StartupFailures int32
	// Resources are the resources of the serving container.
	Resources corev1.ResourceRequirements
	// Observed contains the existing objects around the Pods, with the names that the CatalogSource uses.
	Observed Objects
	// Unread contains the kinds that were not read.
	Unread Unread

	// Complete sets the fields below.

	// Needed contains the objects that should exist.
	Needed Objects
	// AccountShared is true if the ServiceAccount in Observed has no owner reference or is owned by another. The Pods use
	// such a ServiceAccount, but it is not changed.
	AccountShared bool

	pullSecrets []corev1.LocalObjectReference
	podSpec     corev1.PodSpec
	podHash     string // the hash of podSpec, which is a label of new Pods
	contentHash string // the hash of the content of the ConfigMap, without its metadata
}

// Complete computes the needed objects and the Pod spec from the other fields.
func (r *Registry) Complete() {
	account := r.Observed.Account
	r.AccountShared = account != nil && (len(account.OwnerReferences) == 0 || OfOthers(r.Source, account))
	r.pullSecrets = r.accountSecrets(account)
	r.podSpec = r.podShape().spec(probeMain)
	r.podHash = podHash(r.podSpec)
	if cm := r.ConfigMap; cm != nil {
		r.contentHash, _ = objecthash.Hash(struct {
			Name       string
			Data       map[string]string
			BinaryData map[string][]byte
		}{cm.Name, cm.Data, cm.BinaryData})
	}
	r.Needed = r.neededObjects()
}

// FromConfigMap reports whether the content of a CatalogSource comes from a ConfigMap.
func FromConfigMap(cs *v1alpha1.CatalogSource) bool {
	return cs.Spec.SourceType == v1alpha1.SourceTypeConfigmap || cs.Spec.SourceType == v1alpha1.SourceTypeInternal
}

// servingLabels returns the labels by which the Service selects Pods. Candidates do not have them.
func servingLabels(name string) map[string]string {
	return map[string]string{LabelServing: name, olmcore.LabelManaged: "true"}
}

// ServiceName returns the name of the Service and the PodDisruptionBudget of a CatalogSource. It is the name of the
// CatalogSource with every dot replaced by a dash, because the name of a Service must not contain dots.
func ServiceName(name string) string { return strings.ReplaceAll(name, ".", "-") }

// Address returns the address of the Service, as host:port.
func (r *Registry) Address() string {
	return ServiceName(r.Source.Name) + "." + r.Source.Namespace + ".svc:" + Port
}

// Current reports whether a Pod was created from the present spec and the present content of the ConfigMap. The Pod may
// have been created by OLM.
func (r *Registry) Current(pod *corev1.Pod) bool {
	label := pod.Labels[labelPodHash]
	content, knowsContent := pod.Annotations[keyConfigMapHash]
	switch {
	case label == "":
		return false
	case r.ConfigMap != nil && !knowsContent:
		return servesVersion(pod, r.ConfigMap) // OLM does not compare the hash of a config map server
	case label != r.podHash && label != podHash(r.podShape().spec(probeV046)) && label != podHash(r.podShape().spec(probeV041)):
		return false
	}
	return r.ConfigMap == nil || content == r.contentHash
}

// servesVersion reports whether a Pod that OLM made serves this version of a ConfigMap.
func servesVersion(pod *corev1.Pod, cm *corev1.ConfigMap) bool {
	if pod.Labels[LabelConfigMapVersion] != cm.ResourceVersion || len(pod.Spec.Containers) != 1 {
		return false
	}
	command := pod.Spec.Containers[0].Command
	i := slices.Index(command, "-c")
	return i >= 0 && i+1 < len(command) && command[i+1] == cm.Name
}

// podSuffix is the length of the suffix in the name of a Pod.
const podSuffix = 10

// podBase returns the first part of the names of Pods, which is the name of the CatalogSource unless that is too long.
func podBase(name string) string { return strings.TrimRight(name[:min(len(name), 52)], "-.") }

// IsPodName reports whether FreeNames may return name for the CatalogSource with the name source.
func IsPodName(name, source string) bool {
	rest, found := strings.CutPrefix(name, podBase(source)+"-")
	return found && len(rest) == podSuffix
}

// SourceOfPodName returns the name of the CatalogSource to which a Pod with this name may belong. If cut is true,
// source may be only the beginning of that name. source is empty if no registry Pod can have this name.
func SourceOfPodName(name string) (source string, cut bool) {
	at := len(name) - podSuffix - 1
	if at <= 0 || name[at] != '-' {
		return "", false
	}
	return name[:at], at > 40
}

// FreeNames returns n names for new Pods that no observed Pod has. The names are computed, so a repeated decision from
// a stale list of Pods leads to the same names. The API server then rejects the duplicate Pods.
func (r *Registry) FreeNames(pods []*corev1.Pod, n int) (names []string) {
	for number := 0; len(names) < n; number++ {
		name := podBase(r.Source.Name) + "-" + olmcore.NameSuffix(podSuffix, string(r.Source.UID), r.podHash, strconv.Itoa(number))
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == name && p.Namespace == r.Source.Namespace }) {
			names = append(names, name)
		}
	}
	return names
}
