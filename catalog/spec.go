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

// specProblem is why a spec cannot be carried out; the zero value: it can.
type specProblem struct {
	// reason and message are for status.reason and status.message.
	reason        v1alpha1.ConditionReason
	message, path string
}

func invalid(path, message string) specProblem {
	return specProblem{reason: v1alpha1.CatalogSourceSpecInvalidError, message: quoted(message), path: path}
}

// quoted makes text that repeats what a user wrote fit for a condition.
func quoted(text string) string { return clip(strings.ToValidUTF8(text, "?"), 4096) }

// checkSpec returns the first problem of a spec.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, validateSourceType.
// Differs: what the API server or the kubelet would refuse for ever is refused
// here already.
func checkSpec(cs *v1alpha1.CatalogSource) specProblem {
	spec := &cs.Spec
	switch spec.SourceType {
	case v1alpha1.SourceTypeInternal, v1alpha1.SourceTypeConfigmap:
		if spec.ConfigMap == "" {
			return invalid("spec.configMap", "configmap name unset: must be set for sourcetype: "+string(spec.SourceType))
		}
		return checkPodSpec(cs)
	case v1alpha1.SourceTypeGrpc:
		switch {
		case spec.Image != "":
			return checkImageSpec(cs)
		case spec.Address == "":
			return invalid("spec.image", "image and address unset: at least one must be set for sourcetype: grpc")
		}
		if problem := addressProblem(spec.Address); problem != "" {
			return specProblem{
				reason: v1alpha1.CatalogSourceRegistryServerError, path: "spec.address",
				message: quoted("couldn't connect to registry - address " + spec.Address + ": " + problem),
			}
		}
	default:
		return invalid("spec.sourceType", "unknown sourcetype: "+string(spec.SourceType))
	}
	return specProblem{}
}

func checkImageSpec(cs *v1alpha1.CatalogSource) specProblem {
	if strings.ContainsFunc(cs.Spec.Image, unicode.IsSpace) {
		return invalid("spec.image", "image contains white space")
	}
	return checkPodSpec(cs)
}

func checkPodSpec(cs *v1alpha1.CatalogSource) specProblem {
	if !serviceName.MatchString(cs.Name) {
		return invalid("metadata.name", "the name gives no valid service name: it must start with a letter, hold only lower-case letters, digits, dashes and dots, and have at most 63 characters")
	}
	c := cs.Spec.GrpcPodConfig
	if c == nil {
		return specProblem{}
	}
	switch c.SecurityContextConfig {
	case "", v1alpha1.Legacy, v1alpha1.Restricted:
	default:
		return invalid("spec.grpcPodConfig.securityContextConfig", "securityContextConfig must be legacy or restricted")
	}
	if t := c.MemoryTarget; t != nil && t.Sign() < 0 {
		return invalid("spec.grpcPodConfig.memoryTarget", "memoryTarget must not be negative")
	}
	return specProblem{}
}

// podConfigDoubts lists the fields of spec.grpcPodConfig that are taken as they are and
// may not do what was meant. They stop nothing: whether a path is right, the image alone
// can tell.
func podConfigDoubts(cs *v1alpha1.CatalogSource) (list []olmcore.Diagnostic) {
	c := cs.Spec.GrpcPodConfig
	if c == nil {
		return nil
	}
	say := func(severity olmcore.Severity, reason, field, message string) {
		list = append(list, olmcore.Diagnose(severity, reason, olmcore.RefOf(cs), "spec.grpcPodConfig."+field, "%s", message))
	}
	unusual := func(field, message string) { say(olmcore.Warning, ReasonPodConfigUnusual, field, message) }
	if c.MemoryTarget != nil && c.MemoryTarget.Sign() == 0 {
		unusual("memoryTarget", "memoryTarget is 0: the registry collects garbage all the time")
	}
	x := c.ExtractContent
	switch {
	case x == nil:
	case registry.FromConfigMap(cs):
		say(olmcore.Info, ReasonPodConfigIgnored, "extractContent", "extractContent has no effect on a config map")
	default:
		if !strings.HasPrefix(x.CatalogDir, "/") {
			unusual("extractContent.catalogDir", "catalogDir is no absolute path: it counts from the working directory of the image")
		}
		if x.CacheDir != "" && !strings.HasPrefix(x.CacheDir, "/") {
			unusual("extractContent.cacheDir", "cacheDir is no absolute path: it counts from the working directory of the image")
		}
	}
	return list
}

// serviceName is a DNS label of RFC 1035 once dots are dashes.
var serviceName = regexp.MustCompile(`^[a-z]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// addressProblem returns why host:port cannot be dialled, in the words of the
// dialler where it has some; empty when it can.
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
