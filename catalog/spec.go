// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// invalid is the standing of a spec that cannot be carried out.
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
