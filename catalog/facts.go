// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// mode is how far a CatalogSource can be carried out.
type mode int

const (
	modeImage     mode = iota // Pods of an image
	modeConfigMap             // Pods that serve a ConfigMap
	modeAddress               // a registry of others, at an address
	modeDeleting              // it or its namespace is being deleted
	modeInvalid               // bad spec
	modeBlocked               // something is missing, or its name is taken
)

// standing is whether a CatalogSource is carried out, and why not.
type standing struct {
	mode            mode
	reason, message string                   // why it is not; both are empty for the first three modes
	legacy          v1alpha1.ConditionReason // OLM's word for it, in status.reason
	path            string                   // the field of a bad spec
}

// runsPods reports whether it is carried out by Pods: of an image, or such that serve a ConfigMap.
func (s standing) runsPods() bool { return s.mode == modeImage || s.mode == modeConfigMap }

// facts are an Input, observed and classified. They are read-only.
type facts struct {
	Input              // the caller's, with the annotations applied to Config, and without a ConfigMap that is not used
	unapplied Input    // the caller's as it is
	unusable  []string // the annotations that cannot be used
	standing  standing
	registry  registry.Registry
	taken     string // which object that is needed is unmanaged or owned by another, empty for none
	pods      podList
	poll      pollSchedule
	link      link
	// clientNow is the time at which the caller's gRPC client was in the state of Input.Connection: Now, unless a later status is
	// predicted.
	clientNow time.Time
}

// observe classifies an Input. The classes of Pods are those of the table.
func observe(in Input, table []traits) *facts {
	cs := in.CatalogSource
	f := &facts{Input: in, unapplied: in, clientNow: in.Now}
	f.Config, f.unusable = in.Config.applied(cs)
	if cm := in.ConfigMap; !registry.FromConfigMap(cs) || cm != nil && (cm.Name != cs.Spec.ConfigMap || cm.Namespace != cs.Namespace) {
		f.ConfigMap = nil
	}
	f.registry = f.newRegistry()
	f.standing = f.newStanding()
	if f.standing.runsPods() || f.standing.mode == modeBlocked {
		f.registry.Complete()
		if name := f.registry.Taken(); name != "" {
			f.taken = name + " is unmanaged or owned by another"
		}
	}
	f.pods = f.observePods(table)
	if f.standing.runsPods() || f.standing.mode == modeAddress {
		f.poll = f.observePoll()
	}
	f.link = observeLink(in.Connection, cs.Status.GRPCConnectionState, f.address(), in.Now)
	return f
}

func (f *facts) recorded(kind string) *metav1.Condition {
	return meta.FindStatusCondition(f.CatalogSource.Status.Conditions, kind)
}

// recordedNow is recorded for conditions of the present generation.
func (f *facts) recordedNow(kind string) *metav1.Condition {
	if c := f.recorded(kind); c != nil && c.ObservedGeneration == f.CatalogSource.Generation {
		return c
	}
	return nil
}

// address is what the client shall dial; empty while it is unknown.
//
// Differs: an image wins over spec.address, as the API says.
func (f *facts) address() string {
	switch {
	case f.standing.mode == modeAddress:
		return f.CatalogSource.Spec.Address
	case f.standing.runsPods() && f.registry.Observed.Service != nil:
		return f.registry.Address()
	}
	return ""
}

func (f *facts) newStanding() standing {
	cs, service, namespace := f.CatalogSource, f.registry.Observed.Service, f.Namespace
	bad := checkSpec(cs)
	blocked := func(legacy v1alpha1.ConditionReason, reason, message string) standing {
		return standing{mode: modeBlocked, reason: reason, message: message, legacy: legacy}
	}
	switch {
	case cs.DeletionTimestamp != nil,
		namespace != nil && (namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating):
		return standing{mode: modeDeleting, reason: ReasonDeleting, message: "the catalog is being deleted"}
	case bad.reason != "":
		return bad
	case cs.Spec.SourceType == v1alpha1.SourceTypeGrpc && cs.Spec.Image == "":
		return standing{mode: modeAddress}
	case namespace == nil && securityContext(cs) == "":
		return blocked(v1alpha1.CatalogSourceRegistryServerError, ReasonNamespaceUnknown,
			"the namespace was not found, so the security context of the pods is unknown")
	case service != nil && registry.OfOthers(cs, service):
		return blocked(v1alpha1.CatalogSourceRegistryServerError, ReasonNameConflict,
			"the service of the catalog's name is unmanaged or owned by another")
	case !registry.FromConfigMap(cs):
		return standing{mode: modeImage}
	case f.ConfigMap == nil:
		name := clip(cs.Spec.ConfigMap, 253)
		return blocked(v1alpha1.CatalogSourceConfigMapError, ReasonConfigMapMissing,
			"failed to get catalog config map "+name+": configmaps \""+name+"\" not found")
	}
	return standing{mode: modeConfigMap}
}

// securityContext is the one that the spec asks for, empty when the namespace decides.
func securityContext(cs *v1alpha1.CatalogSource) v1alpha1.SecurityConfig {
	if c := cs.Spec.GrpcPodConfig; c != nil {
		return c.SecurityContextConfig
	}
	return ""
}

const labelPodSecurity = "pod-security.kubernetes.io/enforce"

func (f *facts) newRegistry() registry.Registry {
	cs, c := f.CatalogSource, &f.Config
	restricted := securityContext(cs) == v1alpha1.Restricted
	if securityContext(cs) == "" {
		restricted = f.Namespace != nil && f.Namespace.Labels[labelPodSecurity] == "restricted"
	}
	service := registry.ServiceName(cs.Name)
	r := registry.Registry{
		Source: cs, ConfigMap: f.ConfigMap, Restricted: restricted, Replicas: c.Replicas, SpreadHosts: hosts[c.Spread], Resources: *c.Resources,
		OPMImage: c.OPMImage, UtilImage: c.UtilImage, ServerImage: c.ConfigMapServerImage,
		UserID: c.WorkloadUserID, StartupFailures: c.StartupFailureThreshold,
		Observed: registry.Objects{
			Account:      named(f.ServiceAccounts, cs, cs.Name),
			OtherAccount: named(f.ServiceAccounts, cs, cs.Name+registry.SuffixAccount),
			Role:         named(f.Roles, cs, cs.Name+registry.SuffixRole),
			RoleBinding:  named(f.RoleBindings, cs, cs.Name+registry.SuffixBinding),
			ServerPolicy: named(f.NetworkPolicies, cs, cs.Name+registry.SuffixServerPolicy),
			UnpackPolicy: named(f.NetworkPolicies, cs, cs.Name+registry.SuffixUnpackPolicy),
			Service:      named(f.Services, cs, service),
			Budget:       named(f.PodDisruptionBudgets, cs, service),
		},
		Unread: registry.Unread{
			NetworkPolicies: !f.NetworkPolicies.Complete, Roles: !f.Roles.Complete,
			RoleBindings: !f.RoleBindings.Complete, Budgets: !f.PodDisruptionBudgets.Complete,
		},
	}
	if registry.FromConfigMap(cs) {
		r.Observed.Account, r.Observed.OtherAccount = r.Observed.OtherAccount, r.Observed.Account
	}
	return r
}

func named[O olmcore.Object](list olmcore.Observed[O], cs *v1alpha1.CatalogSource, name string) (found O) {
	for _, o := range list.Items {
		if o.GetNamespace() == cs.Namespace && o.GetName() == name {
			return o
		}
	}
	return found
}

func invalid(path, message string) standing {
	return standing{mode: modeInvalid, reason: ReasonSpecInvalid, message: quoted(message), legacy: v1alpha1.CatalogSourceSpecInvalidError, path: path}
}

// quoted makes text that repeats what a user wrote fit for a condition.
func quoted(text string) string { return clip(strings.ToValidUTF8(text, "?"), 4096) }

// checkSpec returns the standing of a spec that cannot be carried out, for its first problem; the zero value for others.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, validateSourceType.
// Differs: what the API server or the kubelet would refuse for ever is refused here already.
func checkSpec(cs *v1alpha1.CatalogSource) standing {
	spec := &cs.Spec
	switch {
	case registry.FromConfigMap(cs) && spec.ConfigMap == "":
		return invalid("spec.configMap", "configmap name unset: must be set for sourcetype: "+string(spec.SourceType))
	case registry.FromConfigMap(cs):
		return checkPodSpec(cs)
	case spec.SourceType != v1alpha1.SourceTypeGrpc:
		return invalid("spec.sourceType", "unknown sourcetype: "+string(spec.SourceType))
	case strings.ContainsFunc(spec.Image, unicode.IsSpace):
		return invalid("spec.image", "image contains white space")
	case spec.Image != "":
		return checkPodSpec(cs)
	case spec.Address == "":
		return invalid("spec.image", "image and address unset: at least one must be set for sourcetype: grpc")
	}
	if problem := addressProblem(spec.Address); problem != "" {
		s := invalid("spec.address", "couldn't connect to registry - address "+spec.Address+": "+problem)
		s.legacy = v1alpha1.CatalogSourceRegistryServerError
		return s
	}
	return standing{}
}

func checkPodSpec(cs *v1alpha1.CatalogSource) standing {
	c := cs.Spec.GrpcPodConfig
	switch {
	case !serviceName.MatchString(cs.Name):
		return invalid("metadata.name", "the name gives no valid service name: it must start with a letter, hold only lower-case letters, digits, dashes and dots, and have at most 63 characters")
	case c == nil:
	case c.SecurityContextConfig != "" && c.SecurityContextConfig != v1alpha1.Legacy && c.SecurityContextConfig != v1alpha1.Restricted:
		return invalid("spec.grpcPodConfig.securityContextConfig", "securityContextConfig must be legacy or restricted")
	case c.MemoryTarget != nil && c.MemoryTarget.Sign() < 0:
		return invalid("spec.grpcPodConfig.memoryTarget", "memoryTarget must not be negative")
	}
	return standing{}
}

// podConfigDoubts lists the fields of spec.grpcPodConfig that are taken as they are and may not do what was meant. They
// stop nothing: whether a path is right, the image alone can tell.
func podConfigDoubts(cs *v1alpha1.CatalogSource) (list []olmcore.Diagnostic) {
	c := cs.Spec.GrpcPodConfig
	if c == nil {
		return nil
	}
	doubt := func(severity olmcore.Severity, reason, field, message string) {
		list = append(list, olmcore.Diagnose(severity, reason, olmcore.RefOf(cs), "spec.grpcPodConfig."+field, "%s", message))
	}
	if c.MemoryTarget != nil && c.MemoryTarget.Sign() == 0 {
		doubt(olmcore.Warning, ReasonPodConfigUnusual, "memoryTarget", "memoryTarget is 0: the registry collects garbage all the time")
	}
	switch x := c.ExtractContent; {
	case x == nil:
	case registry.FromConfigMap(cs):
		doubt(olmcore.Info, ReasonPodConfigIgnored, "extractContent", "extractContent has no effect on a config map")
	default:
		const relative = " is no absolute path: it counts from the working directory of the image"
		if !strings.HasPrefix(x.CatalogDir, "/") {
			doubt(olmcore.Warning, ReasonPodConfigUnusual, "extractContent.catalogDir", "catalogDir"+relative)
		}
		if x.CacheDir != "" && !strings.HasPrefix(x.CacheDir, "/") {
			doubt(olmcore.Warning, ReasonPodConfigUnusual, "extractContent.cacheDir", "cacheDir"+relative)
		}
	}
	return list
}

// serviceName is a DNS label of RFC 1035 once dots are dashes.
var serviceName = regexp.MustCompile(`^[a-z]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// addressProblem returns why host:port cannot be dialled, in the words of the dialler where it has some; empty when it can.
func addressProblem(address string) string {
	host, port, found := "", "", false
	if strings.HasPrefix(address, "[") {
		host, port, found = strings.Cut(address[1:], "]:")
	} else {
		if strings.Count(address, ":") > 1 {
			return "too many colons in address"
		}
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
