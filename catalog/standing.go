// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// mode says how a CatalogSource is served, or why it is not.
type mode int

const (
	modeImage     mode = iota // Pods run its image
	modeConfigMap             // Pods serve its ConfigMap
	modeAddress               // others run a registry at its address
	modeDeleting              // it is not served any more, because it or its namespace is being deleted
	modeInvalid               // it is not served, because its spec is invalid
	modeBlocked               // it is not served yet, because an object is missing or a name is taken
)

// standing is the mode of a CatalogSource. If it is not served, the standing says why.
type standing struct {
	mode            mode
	reason, message string                   // empty for modeImage, modeConfigMap and modeAddress
	legacy          v1alpha1.ConditionReason // the reason in OLM's status.reason
	path            string                   // the field of an invalid spec
}

// runsPods reports whether the CatalogSource is served by Pods.
func (s standing) runsPods() bool { return s.mode == modeImage || s.mode == modeConfigMap }

// observeStanding returns the standing. If there are several reasons why the CatalogSource cannot be served, it
// contains the first one.
func (f *facts) observeStanding() standing {
	cs := f.source
	namespace := f.in.Namespace
	service := f.registry.Observed.Service
	if cs.DeletionTimestamp != nil || namespace != nil && isTerminating(namespace) {
		return standing{mode: modeDeleting, reason: ReasonDeleting, message: "the catalog is being deleted"}
	}
	if invalid := checkSpec(cs); invalid.reason != "" {
		return invalid
	}
	if cs.Spec.SourceType == v1alpha1.SourceTypeGrpc && cs.Spec.Image == "" {
		return standing{mode: modeAddress}
	}
	if namespace == nil && securityContext(cs) == "" {
		return standing{mode: modeBlocked, reason: ReasonNamespaceUnknown, legacy: v1alpha1.CatalogSourceRegistryServerError,
			message: "the namespace was not found, so the security context of the pods is unknown"}
	}
	if service != nil && registry.OfOthers(cs, service) {
		return standing{mode: modeBlocked, reason: ReasonNameConflict, legacy: v1alpha1.CatalogSourceRegistryServerError,
			message: "the service of the catalog's name is unmanaged or owned by another"}
	}
	if !registry.FromConfigMap(cs) {
		return standing{mode: modeImage}
	}
	if f.registry.ConfigMap == nil {
		name := clip(cs.Spec.ConfigMap, 253)
		return standing{mode: modeBlocked, reason: ReasonConfigMapMissing, legacy: v1alpha1.CatalogSourceConfigMapError,
			message: "failed to get catalog config map " + name + ": configmaps \"" + name + "\" not found"}
	}
	return standing{mode: modeConfigMap}
}

func isTerminating(namespace *corev1.Namespace) bool {
	return namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating
}

// usedConfigMap returns the ConfigMap of the Input if the CatalogSource is made from it.
func (f *facts) usedConfigMap() *corev1.ConfigMap {
	cs := f.source
	cm := f.in.ConfigMap
	if cm == nil || !registry.FromConfigMap(cs) || cm.Name != cs.Spec.ConfigMap || cm.Namespace != cs.Namespace {
		return nil
	}
	return cm
}

// securityContext returns the security context in the spec. If it is empty, it follows from the namespace.
func securityContext(cs *v1alpha1.CatalogSource) v1alpha1.SecurityConfig {
	if c := cs.Spec.GrpcPodConfig; c != nil {
		return c.SecurityContextConfig
	}
	return ""
}

// invalidSpec returns the standing of a spec whose field at a path is invalid.
func invalidSpec(path, message string) standing {
	return standing{
		mode: modeInvalid, reason: ReasonSpecInvalid, message: quoted(message),
		legacy: v1alpha1.CatalogSourceSpecInvalidError, path: path,
	}
}

// quoted makes text that repeats what a user wrote fit for a condition.
func quoted(text string) string { return clip(strings.ToValidUTF8(text, "?"), 4096) }

// checkSpec returns the standing of an invalid spec, for the first invalid field. For a valid spec it returns the zero
// value.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, validateSourceType.
// Differs: values that the API server or the kubelet would reject permanently are reported here.
func checkSpec(cs *v1alpha1.CatalogSource) standing {
	spec := &cs.Spec
	switch {
	case registry.FromConfigMap(cs) && spec.ConfigMap == "":
		return invalidSpec("spec.configMap", "configmap name unset: must be set for sourcetype: "+string(spec.SourceType))
	case registry.FromConfigMap(cs):
		return checkPodSpec(cs)
	case spec.SourceType != v1alpha1.SourceTypeGrpc:
		return invalidSpec("spec.sourceType", "unknown sourcetype: "+string(spec.SourceType))
	case strings.ContainsFunc(spec.Image, unicode.IsSpace):
		return invalidSpec("spec.image", "image contains white space")
	case spec.Image != "":
		return checkPodSpec(cs)
	case spec.Address == "":
		return invalidSpec("spec.image", "image and address unset: at least one must be set for sourcetype: grpc")
	}
	if problem := addressProblem(spec.Address); problem != "" {
		s := invalidSpec("spec.address", "couldn't connect to registry - address "+spec.Address+": "+problem)
		s.legacy = v1alpha1.CatalogSourceRegistryServerError
		return s
	}
	return standing{}
}

func checkPodSpec(cs *v1alpha1.CatalogSource) standing {
	c := cs.Spec.GrpcPodConfig
	switch {
	case !serviceName.MatchString(cs.Name):
		return invalidSpec("metadata.name", "the name results in no valid service name: it must start with a letter, "+
			"contain only lower-case letters, digits, dashes and dots, and have at most 63 characters")
	case c == nil:
	case c.SecurityContextConfig != "" && c.SecurityContextConfig != v1alpha1.Legacy && c.SecurityContextConfig != v1alpha1.Restricted:
		return invalidSpec("spec.grpcPodConfig.securityContextConfig", "securityContextConfig must be legacy or restricted")
	case c.MemoryTarget != nil && c.MemoryTarget.Sign() < 0:
		return invalidSpec("spec.grpcPodConfig.memoryTarget", "memoryTarget must not be negative")
	}
	return standing{}
}

// podConfigDiagnostics reports fields of spec.grpcPodConfig that are valid and may not have the intended effect. They
// do not make the spec invalid, because only the image shows whether a path exists.
func podConfigDiagnostics(cs *v1alpha1.CatalogSource) (list []olmcore.Diagnostic) {
	c := cs.Spec.GrpcPodConfig
	if c == nil {
		return nil
	}
	report := func(severity olmcore.Severity, reason, field, message string) {
		list = append(list, olmcore.Diagnose(severity, reason, olmcore.RefOf(cs), "spec.grpcPodConfig."+field, "%s", message))
	}
	if c.MemoryTarget != nil && c.MemoryTarget.Sign() == 0 {
		report(olmcore.Warning, ReasonPodConfigUnusual, "memoryTarget", "memoryTarget is 0, so the registry runs garbage collection constantly")
	}
	extract := c.ExtractContent
	if extract == nil {
		return list
	}
	if registry.FromConfigMap(cs) {
		report(olmcore.Info, ReasonPodConfigIgnored, "extractContent", "extractContent has no effect on a config map")
		return list
	}
	const relative = " is not an absolute path: it is resolved from the working directory of the image"
	if !strings.HasPrefix(extract.CatalogDir, "/") {
		report(olmcore.Warning, ReasonPodConfigUnusual, "extractContent.catalogDir", "catalogDir"+relative)
	}
	if extract.CacheDir != "" && !strings.HasPrefix(extract.CacheDir, "/") {
		report(olmcore.Warning, ReasonPodConfigUnusual, "extractContent.cacheDir", "cacheDir"+relative)
	}
	return list
}

// serviceName matches names that are a DNS label of RFC 1035 once dots are replaced by dashes.
var serviceName = regexp.MustCompile(`^[a-z]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// addressProblem returns why a client cannot connect to an address, or an empty string for a valid address. The texts
// are those of the gRPC dialer, as far as it has some.
func addressProblem(address string) string {
	var host, port string
	var found bool
	switch {
	case strings.HasPrefix(address, "["):
		host, port, found = strings.Cut(address[1:], "]:")
	case strings.Count(address, ":") > 1:
		return "too many colons in address"
	default:
		host, port, found = strings.Cut(address, ":")
	}
	number, err := strconv.ParseUint(port, 10, 16)
	switch {
	case !found:
		return "missing port in address"
	case host == "" || strings.ContainsFunc(host, unicode.IsSpace):
		return "missing host in address"
	case err != nil || number == 0:
		return "invalid port in address"
	}
	return ""
}
