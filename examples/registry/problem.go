// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"unicode"

	"google.golang.org/grpc/codes"

	"github.com/olmcore/olm/olmcore"
)

// limitError is a limit that a catalog goes beyond. Of one that it shares with others, these may leave more.
type limitError struct {
	text   string
	shared bool
}

// Error implements error.
func (e *limitError) Error() string { return e.text }

// limitOf returns the limit that an error is about, nil for other errors.
func limitOf(err error) *limitError {
	var limit *limitError
	errors.As(err, &limit)
	return limit
}

var errLost = errors.New("the connection was lost while the catalog was read")

// problemOf says why a catalog could not be read, and what to do. It names no address and no time, so that the same
// problem has the same text.
func problemOf(err error) string {
	said, isStatus := statusOf(err)
	var its *answer
	isAnswer := errors.As(err, &its)
	switch {
	case !isStatus || limitOf(err) != nil:
		return err.Error()
	case isAnswer && said.Code() == codes.Unimplemented:
		return "what answers is gRPC, but no registry of a catalog: check the address, or the image"
	case !isAnswer && (said.Code() == codes.Unavailable || said.Code() == codes.Canceled):
		return errLost.Error() + ": check the registry's log and its memory limit"
	case said.Code() == codes.ResourceExhausted && tooLarge(said.Message()):
		return "a bundle, or a package, is larger than the 4 MiB that OLM takes: leave manifests to the bundle's image"
	}
	return fmt.Sprintf("the registry answers %s: %s", said.Code(), quoted(said.Message()))
}

// tooLarge: these are the words of gRPC's client about a message that it does not take. It may have heard by then that
// the registry ended the call well.
func tooLarge(message string) bool {
	return strings.HasPrefix(message, "grpc: received message ") || strings.HasPrefix(message, "grpc: message after decompression ")
}

// printable is what others wrote, without what ends a line or moves a cursor.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// tellable is what is told of a catalog: no more than maxProblems of each list, in which names and values of others
// stand as they came.
func tellable(lists ...[]olmcore.Diagnostic) (told []olmcore.Diagnostic) {
	for _, list := range lists {
		for i, d := range list {
			if i == maxProblems {
				told = append(told, olmcore.Diagnostic{Severity: olmcore.Warning, Reason: d.Reason, Message: "more is left out than is told here"})
				break
			}
			d.Path, d.Message = printable(d.Path), printable(d.Message)
			told = append(told, d)
		}
	}
	return told
}

// quoted is what others wrote, as part of a message.
func quoted(text string) string {
	text = printable(text)
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// whyNot says why there is no connection, and what to do.
func (c *client) whyNot() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dialing != nil {
		return whyNotDialed(c.dialing)
	}
	return c.peer.what()
}

// whyNotDialed names no IP address or port: who may write an address need not learn what its name means inside.
func whyNotDialed(err error) string {
	var dns *net.DNSError
	var errno syscall.Errno
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host: check the address; a name of the cluster is known inside of the cluster alone"
	case errors.As(err, &dns):
		return "the name of the host cannot be resolved: check DNS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: no Pod of the Service is ready, or nothing listens at the port"
	case errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return "no answer: check the address, and the network policies on the way"
	case errors.As(err, &errno):
		return errno.Error() + ": check the address, and the network policies on the way"
	}
	return quoted(err.Error())
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// sniffer remembers what a peer says first.
type sniffer struct {
	net.Conn
	mu   sync.Mutex
	head []byte
}

// sniffed is as much as tells HTTP/2, HTTP/1 and TLS apart.
const sniffed = 9

// Read implements net.Conn.
func (s *sniffer) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = append(s.head, p[:min(n, sniffed-len(s.head))]...)
	return n, err
}

// what says why a peer that was reached is no registry.
func (s *sniffer) what() string {
	if s == nil {
		return "no connection yet"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	const settings = 4 // the type of the frame that a server of HTTP/2 begins with
	switch {
	case len(s.head) == 0:
		return "the connection is closed without an answer: the registry ends, or wants TLS, which registries must not"
	case len(s.head) > 1 && (s.head[0] == 0x15 || s.head[0] == 0x16) && s.head[1] == 3:
		return "what answers speaks TLS: registries must serve gRPC without it, whatever its certificate"
	case bytes.HasPrefix(s.head, []byte("HTTP/1")):
		return "what answers speaks HTTP/1, not gRPC: check the address and its port"
	case len(s.head) == sniffed && s.head[3] == settings:
		return "the connection is lost: check the registry's log and its memory limit"
	}
	return "what answers does not speak gRPC: check the address and its port"
}
